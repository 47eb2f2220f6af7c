"""What all of the protocol's vocabulary is made of: requests, their answers, notifications."""

from __future__ import annotations

from typing import ClassVar

from trunkline.base.shapes import CamelCased

#: The version of the protocol that is spoken here. Each is a whole number; what is added without one is a capability.
PROTOCOL_VERSION = 1


class AcpResult(CamelCased):
    """The answer to a request. Many hold nothing: that there is one is all they say."""


class AcpRequest(CamelCased):
    """What one end asks of the other."""

    method: ClassVar[str]
    result: ClassVar[type[AcpResult]] = AcpResult


class AcpNotification(CamelCased):
    """What one end tells the other, which does not answer."""

    method: ClassVar[str]
