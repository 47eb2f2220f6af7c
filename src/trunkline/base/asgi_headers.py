"""Headers that every answer of an ASGI application has, whoever in it answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: An answer is what it says it is: a browser must not take JSON that somebody else's words are in for a page.
NO_SNIFFING = {"X-Content-Type-Options": "nosniff"}


class AddedHeaders:
    """Outermost: also what is refused on the way in has them. A header that an answer has already stays as it is."""

    def __init__(self, app: ASGIApp, *, headers: Mapping[str, str]) -> None:
        self._app = app
        self._headers = dict(headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, with_headers(send, self._headers) if scope["type"] == "http" else send)


def with_headers(send: Send, added: Mapping[str, str]) -> Send:
    """Sends the same answer with these headers, as far as it does not have them."""
    from starlette.datastructures import MutableHeaders

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in added.items():
                headers.setdefault(name, value)
        await send(message)

    return sending
