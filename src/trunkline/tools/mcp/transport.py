"""How a server is reached: what every transport offers to a connection."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from trunkline.base.redact import Clean

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

#: Some errors quote all that they did not understand.
_SHORT_CHARS = 300

#: Those that an address need not name.
_PORTS = {"http": 80, "https": 443}

#: Called when a transport sees that the connection is of no use any more.
OnBroken = Callable[[], None]


class Transport(Protocol):
    """One way to one server, for one connection."""

    @property
    def refused(self) -> bool:
        """Whether the server does not know our session any more: what was asked last has not been done."""

    @property
    def needs_login(self) -> bool:
        """Whether nothing comes of it before somebody has logged in."""

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


def place(url: str) -> str:
    """A server's address without what may be secret in it."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    own = None if parts.port == _PORTS.get(parts.scheme) else parts.port
    return f"{parts.scheme}://{shown}" + (f":{own}" if own is not None else "")


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
