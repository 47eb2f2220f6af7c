"""ACP over HTTP: connections that outlive their requests, and what is asked of them.

A connection ends when it is deleted, when nobody has read or written for a while, when its client takes nothing of what
it asked for, and when its person is no longer welcome.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from contextlib import suppress

from starlette.requests import Request

from trunkline.base.asgi_body import bounded_body
from trunkline.core.faults import Fault
from trunkline.wires import jsonrpc
from trunkline.wires.acp import codec, remote
from trunkline.wires.acp.codec import RpcBroken, RpcRequest
from trunkline.wires.acp.remote import (
    CONNECTION_HEADER,
    SESSION_HEADER,
    Connect,
    Receive,
    RemoteEnd,
    RemoteRefused,
    Scope,
    Send,
    Visitor,
)
from trunkline.wires.acp.remote_streams import BRINGING, MessageStream, MessageStreams, session_in

logger = logging.getLogger(__name__)

#: How long a body may take to arrive.
BODY_SECONDS = 30.0
#: How long `initialize` may take, which its request waits for.
INITIALIZE_SECONDS = 30.0
#: How long a connection is kept that nobody reads from and nobody writes to.
IDLE_SECONDS = 300.0
#: How long the last words may take to be read.
LAST_SECONDS = 1.0

JSON = "application/json"
EVENTS = "text/event-stream"

#: What the protocol wants to be sent with the header of the session.
_SCOPED = frozenset(
    {"session/prompt", "session/cancel", "session/set_mode", "session/set_config_option", "session/close"}
)

_ALIVE = b": keepalive\n\n"


class HttpConnections:
    """All of them, by their ids."""

    def __init__(self, connect: Connect, count: Callable[[str], int]) -> None:
        """`count` tells how many connections somebody has, of all kinds."""
        self._connect = connect
        self._count = count
        self._open: dict[str, HttpConnection] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def count(self, visitor: str) -> int:
        """How many somebody has here."""
        return sum(connection.visitor.name == visitor for connection in self._open.values())

    async def serve(self, visitor: Visitor, agent: str | None, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request.

        Raises:
            Refused: it is not granted.
        """
        match scope["method"]:
            case "POST":
                await self._post(visitor, agent, scope, receive, send)
            case "GET":
                await self._get(visitor, scope, receive, send)
            case "DELETE":
                self.end(self._find(visitor, scope))
                await remote.answer(scope, send, 202)
            case _:
                raise RemoteRefused(405, "Use POST, GET or DELETE.")

    async def close(self) -> None:
        """End all of them."""
        for connection in tuple(self._open.values()):
            self.end(connection)
        if self._closing:
            await asyncio.wait(self._closing)

    def end(self, connection: HttpConnection) -> None:
        """End one."""
        if self._open.pop(connection.id, None) is not None:
            task = asyncio.get_running_loop().create_task(connection.close(), name="close an ACP connection")
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def _post(self, visitor: Visitor, agent: str | None, scope: Scope, receive: Receive, send: Send) -> None:
        if _header(scope, "content-type").partition(";")[0].strip().lower() != JSON:
            raise RemoteRefused(415, f"Send your message as `Content-Type: {JSON}`.")
        body = await bounded_body(Request(scope, receive), codec.MAX_LINE, BODY_SECONDS)
        message = codec.decode(body)
        if isinstance(message, RpcBroken):
            is_batch = message.error.code != jsonrpc.PARSE_ERROR and body.lstrip().startswith(b"[")
            raise RemoteRefused(501 if is_batch else 400, str(message.error), message.error.code)
        if isinstance(message, RpcRequest) and message.method == "initialize":
            await self._initialize(visitor, agent, message, scope, send)
            return
        connection = self._find(visitor, scope)
        session = _header(scope, SESSION_HEADER)
        method = getattr(message, "method", "")
        named = session_in(getattr(message, "params", None))
        if method in _SCOPED and not session:
            raise RemoteRefused(400, f"`{method}` needs the header `{SESSION_HEADER}`.")
        if session and named and session != named:
            raise RemoteRefused(400, f"The header `{SESSION_HEADER}` names another session than `sessionId`.")
        if session and method not in BRINGING and not await connection.knows(session):
            raise RemoteRefused(404, "There is no session of that id here.", jsonrpc.RESOURCE_NOT_FOUND)
        connection.hear(message)
        if connection.congested:
            # Whoever asks for more than it reads waits for itself.
            await connection.drain()
        await remote.answer(scope, send, 202)

    async def _initialize(
        self, visitor: Visitor, agent: str | None, message: RpcRequest, scope: Scope, send: Send
    ) -> None:
        if _header(scope, CONNECTION_HEADER):
            raise RemoteRefused(400, "This connection is initialized. Leave its header out to make another one.")
        if message.id is None:
            raise RemoteRefused(400, "`initialize` needs an `id`.")
        remote.room(self._count(visitor.name))
        try:
            connection = HttpConnection(visitor, agent, self._connect, self.end)
        except Fault as fault:
            raise RemoteRefused.of(fault) from None
        self._open[connection.id] = connection
        answered = connection.streams.expect(message.id)
        try:
            connection.hear(message)
            async with asyncio.timeout(INITIALIZE_SECONDS):
                line = await answered
        except TimeoutError:
            self.end(connection)
            raise RemoteRefused(504, "The agent did not answer in time.", jsonrpc.INTERNAL_ERROR) from None
        except BaseException:
            self.end(connection)
            raise
        await remote.answer(scope, send, 200, line.strip(), {CONNECTION_HEADER: connection.id})

    async def _get(self, visitor: Visitor, scope: Scope, receive: Receive, send: Send) -> None:
        accepted = _header(scope, "accept").lower()
        if EVENTS not in accepted and "*/*" not in accepted:
            raise RemoteRefused(406, f"Say that you take `{EVENTS}` in the header `Accept`.")
        connection = self._find(visitor, scope)
        session = _header(scope, SESSION_HEADER)
        if not session:
            await connection.stream(connection.streams.main, receive, send)
            return
        # Some clients listen first, and load the session then.
        if not await connection.knows(session):
            raise RemoteRefused(404, "There is no session of that id here.", jsonrpc.RESOURCE_NOT_FOUND)
        if connection.streams.is_full and not connection.streams.has(session):
            raise RemoteRefused(429, "This connection has too many streams. Close some sessions first.")
        stream = connection.streams.of(session)
        await connection.stream(stream, receive, send)
        connection.streams.gone(session, stream)

    def _find(self, visitor: Visitor, scope: Scope) -> HttpConnection:
        id = _header(scope, CONNECTION_HEADER)
        if not id:
            raise RemoteRefused(400, f"The header `{CONNECTION_HEADER}` is missing: send `initialize` first.")
        found = self._open.get(id)
        if found is None or found.visitor.name != visitor.name:
            raise RemoteRefused(
                404, "There is no connection of that id. Send `initialize` again.", jsonrpc.RESOURCE_NOT_FOUND
            )
        return found


class HttpConnection:
    """One connection: also the `LineOutput` of the agent's end."""

    def __init__(
        self, visitor: Visitor, agent: str | None, connect: Connect, end: Callable[[HttpConnection], None]
    ) -> None:
        self.id = secrets.token_urlsafe(24)
        self.visitor = visitor
        self.streams = MessageStreams()
        self._end = end
        self._loop = asyncio.get_running_loop()
        self._sent = asyncio.Event()
        self._over = False
        self._idle: asyncio.TimerHandle | None = None
        self._telling: set[asyncio.Task[None]] = set()
        self._agent: RemoteEnd = connect(visitor, agent, self)
        self._wait_for_use()

    async def knows(self, session: str) -> bool:
        """Whether there is that session."""
        return self.streams.has(session) or await self._agent.knows(session)

    def hear(self, message: codec.RpcMessage) -> None:
        """A message of the client."""
        self._wait_for_use()
        self.streams.heard(message)
        self._agent.take(message)

    async def stream(self, stream: MessageStream, receive: Receive, send: Send) -> None:
        """Tell what is said in a stream, until the client leaves or somebody else reads it."""
        head = [(b"content-type", EVENTS.encode()), (b"cache-control", b"no-store"), (b"x-accel-buffering", b"no")]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        reader = object()
        stream.begin(reader)
        self._wait_for_use()
        telling = self._loop.create_task(self._tell(stream, reader, send), name="tell an ACP client")
        self._telling.add(telling)
        leaving = self._loop.create_task(_left(receive), name="an ACP client leaves")
        try:
            await asyncio.wait({telling, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stream.leave(reader)
            self._wait_for_use()
            for task in (telling, leaving):
                task.cancel()
            await asyncio.wait({telling, leaving})
            self._telling.discard(telling)
        # One that is cut off gets no end: it must not take what it has for everything.
        if not telling.cancelled() and telling.exception() is None:
            await send({"type": "http.response.body", "body": b""})

    async def _tell(self, stream: MessageStream, reader: object, send: Send) -> None:
        # The head goes out with the first bytes: the client waits for it.
        await send({"type": "http.response.body", "body": _ALIVE, "more_body": True})
        while (lines := await stream.read(reader, remote.KEEPALIVE_SECONDS)) is not None:
            if not self.visitor.is_welcome():
                self._end(self)
                return
            events = b"".join(b"data: " + line.rstrip() + b"\n\n" for line in lines)
            try:
                await send({"type": "http.response.body", "body": events or _ALIVE, "more_body": True})
            finally:
                stream.sent(lines)
                self._sent.set()

    async def close(self) -> None:
        """Say no more, and leave the sessions."""
        self._over = True
        self._sent.set()
        if self._idle is not None:
            self._idle.cancel()
        self.streams.finish()
        try:
            await self._agent.close()
        except Exception:
            logger.exception("an ACP connection could not be closed")
        if self._telling:
            await asyncio.wait(set(self._telling), timeout=LAST_SECONDS)
        for task in self._telling:
            task.cancel()

    # The output of the agent's end.

    @property
    def congested(self) -> bool:
        """Whether the agent should wait."""
        return not self._over and self.streams.size > remote.MAX_UNREAD

    def write(self, data: bytes) -> None:
        """A message."""
        if self._over:
            return
        self.streams.tell(data)
        if self.streams.size > remote.MAX_UNSENT:
            self._over = True
            self._end(self)

    def flush(self) -> None:
        """It is on its way already."""

    async def drain(self) -> None:
        """Wait until it is not congested; a client for whom that takes too long is let go of, and may come back."""
        if not await remote.caught_up(lambda: self.congested, self._sent):
            self._over = True
            self._end(self)

    def _wait_for_use(self) -> None:
        """It is in use; when it is not for too long, it ends."""
        if self._idle is not None:
            self._idle.cancel()
        if not self._over:
            self._idle = self._loop.call_later(IDLE_SECONDS, self._look)

    def _look(self) -> None:
        if self.streams.is_read:
            self._wait_for_use()
        else:
            self._end(self)


async def _left(receive: Receive) -> None:
    """Wait until the client has left."""
    with suppress(OSError):
        while (await receive())["type"] != "http.disconnect":
            pass


def _header(scope: Scope, name: str) -> str:
    wanted = name.lower().encode()
    found = [value for key, value in scope["headers"] if key == wanted]
    return found[0].decode("latin-1").strip() if len(found) == 1 else ""
