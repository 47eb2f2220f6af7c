"""How a server is reached: what every transport offers to a connection."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

from trunkline.base.redact import Clean

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

#: Some errors quote all that they did not understand.
_SHORT_CHARS = 300

#: Called when a transport sees that the connection is of no use any more.
OnBroken = Callable[[], None]


class Transport(Protocol):
    """One way to one server, for one connection."""

    @property
    def refused(self) -> bool:
        """Whether the server does not know our session any more: what was asked last has not been done."""

    @property
    def remote(self) -> bool:
        """Whether single answers can get lost while the connection goes on."""

    def connect(self, on_broken: OnBroken) -> AbstractAsyncContextManager[TransportStreams]:
        """The streams of the SDK. Leaving the context ends the connection in bounded time."""

    @property
    def clean(self) -> Clean:
        """Takes out of a text of the server what must not be shown, before it is cut."""

    def explain(self, error: BaseException | None) -> str:
        """Why the connection failed or ended, for people: the rest of a sentence about the server, no secrets."""


def leaf(error: BaseException) -> BaseException:
    """The first error in nested groups of errors."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def in_short(error: BaseException, clean: Clean) -> str:
    """What an error says, in one line."""
    return clean(first_line(error))[:_SHORT_CHARS]


def first_line(error: BaseException) -> str:
    """What an error says in its first line, however long that is."""
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__
