"""The application: the page, its files, and the socket between it and a conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from trunkline.base import pages
from trunkline.exchange.talk.conversation import MAX_MESSAGE, PageConversation, TalkRefused, Where
from trunkline.exchange.talk.gate import Gate

#: Conversations at once: each has a recognizer at work, and people have few tabs that they talk to.
MAX_CONVERSATIONS = 8
#: Told to a page that is one too many, that said what it never says or too much of it at once, and whose conversation
#: cannot go on.
TOO_MANY, UNKNOWN, TOO_LARGE, OVER = 1013, 1008, 1009, 1011
#: And in words, where there is something to be said.
_REASONS = {TOO_LARGE: f"A message has at most {MAX_MESSAGE} bytes."}


def application(where: Callable[[], Where]) -> Starlette:
    """The page for conversations on a server, which `where` gives each time it is asked."""
    page = pages.environment("trunkline.exchange.talk").get_template("talk.html").render()
    count = 0

    async def talk_page(request: Request) -> Response:
        return Response(page, media_type="text/html")

    async def talk(socket: WebSocket) -> None:
        nonlocal count
        await socket.accept()
        if count >= MAX_CONVERSATIONS:
            await socket.close(TOO_MANY, "There are too many conversations.")
            return
        count += 1
        try:
            await _converse(socket, where())
        finally:
            count -= 1

    static = Mount("/static", pages.static("trunkline.exchange.talk"))
    routes = [Route("/", talk_page), WebSocketRoute("/talk", talk), static]
    return Starlette(routes=routes, middleware=[Middleware(Gate)])


class _Socket:
    """A `TalkPage`. Nothing is sent to one that has disconnected."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket

    @property
    def _open(self) -> bool:
        return self._socket.application_state is self._socket.client_state is WebSocketState.CONNECTED

    async def text(self, message: bytes) -> None:
        if self._open:
            await self._socket.send_text(message.decode())

    async def sound(self, pcm: bytes) -> None:
        if self._open:
            await self._socket.send_bytes(pcm)


async def _converse(socket: WebSocket, where: Where) -> None:
    conversation = PageConversation(where, _Socket(socket))
    reading = asyncio.create_task(_read(socket, conversation), name="page")
    over = asyncio.create_task(conversation.over.wait(), name="conversation's end")
    try:
        await conversation.begin()
        await asyncio.wait({reading, over}, return_when=asyncio.FIRST_COMPLETED)
    except WebSocketDisconnect:
        return
    finally:
        reading.cancel()
        over.cancel()
        await asyncio.wait({reading, over})
        await conversation.close()
    code = reading.result() if reading.done() and not reading.cancelled() else OVER
    if socket.client_state is socket.application_state is WebSocketState.CONNECTED:
        await socket.close(code, _REASONS.get(code))


async def _read(socket: WebSocket, conversation: PageConversation) -> int:
    """Do what the page wants until it is gone, or is no page of ours; gives what it is told then."""
    try:
        while True:
            message = await socket.receive()
            if message["type"] == "websocket.disconnect":
                return OVER
            pcm, text = message.get("bytes"), message.get("text") or ""
            if len(text.encode() if pcm is None else pcm) > MAX_MESSAGE:
                return TOO_LARGE
            if pcm is not None:
                await conversation.hear(pcm)
            else:
                await conversation.take(text)
    except TalkRefused:
        return UNKNOWN
    except WebSocketDisconnect:
        return OVER
