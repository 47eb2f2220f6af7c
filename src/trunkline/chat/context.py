"""What all conversations of one platform share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from trunkline.base.values import Value
from trunkline.chat.delivery.outbox import Outbox
from trunkline.chat.delivery.store import ChatStore
from trunkline.chat.opening import Opener
from trunkline.chat.platform import Inbound, Platform, Pressed
from trunkline.chat.senders import Senders

T = TypeVar("T")


class RunAside(Protocol):
    """Does something that takes a while where it holds up nobody; `asyncio.to_thread` is one."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]: ...


class BridgeContext(Value):
    """The platform, and what serves it."""

    platform: Platform
    store: ChatStore
    outbox: Outbox
    opener: Opener
    senders: Senders
    files: str
    """The directory for files that come and go."""
    aside: RunAside
    wall: Callable[[], float]
    """The clock that messages are dated by: seconds since 1970."""

    def sender(self, item: Inbound | Pressed) -> str:
        """What the rules for senders call whoever wrote or pressed this."""
        return f"{self.platform.name}:{item.sender}"

    def person(self, item: Inbound | Pressed) -> str:
        """Who that is in a session that others share; nobody in one that the chat has for itself."""
        return self.sender(item) if self.opener.shares else ""

    def may_approve(self, item: Inbound | Pressed) -> bool:
        """Whether they may answer what an agent asks."""
        return self.senders.may_approve(self.sender(item))

    def allowed(self, item: Inbound | Pressed) -> bool:
        """Whether they are let in."""
        return self.senders.allowed(self.sender(item))
