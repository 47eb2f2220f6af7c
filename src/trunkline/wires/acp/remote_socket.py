"""ACP over a WebSocket: a message in each text frame, in both directions. The socket's end is the connection's."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress

from trunkline.core.faults import Fault
from trunkline.wires.acp import codec, remote
from trunkline.wires.acp.remote import CONNECTION_HEADER, Connect, Receive, RemoteRefused, Send, Visitor

logger = logging.getLogger(__name__)

#: What is told at the end of a socket: nothing; we go away; somebody may not be there; the client does not read.
NORMAL, GOING_AWAY, NOT_WELCOME, TOO_SLOW = 1000, 1001, 1008, 1013
#: How long the last words may take to be read.
LAST_SECONDS = 1.0


class SocketConnections:
    """All of them."""

    def __init__(self, connect: Connect, count: Callable[[str], int]) -> None:
        """`count` tells how many connections somebody has, of all kinds."""
        self._connect = connect
        self._count = count
        self._names: Counter[str] = Counter()
        self._open: set[SocketOutput] = set()

    def count(self, visitor: str) -> int:
        """How many somebody has here."""
        return self._names[visitor]

    async def serve(self, visitor: Visitor, agent: str | None, receive: Receive, send: Send) -> None:
        """See a socket through.

        Raises:
            RemoteRefused: it is not accepted.
        """
        remote.room(self._count(visitor.name))
        if (await receive())["type"] != "websocket.connect":
            return
        output = SocketOutput(visitor, send)
        try:
            end = self._connect(visitor, agent, output)
        except Fault as fault:
            raise RemoteRefused.of(fault) from None
        self._open.add(output)
        self._names[visitor.name] += 1
        try:
            id = (CONNECTION_HEADER.lower().encode(), secrets.token_urlsafe(24).encode())
            await send({"type": "websocket.accept", "headers": [id]})
            hearing = asyncio.create_task(_hear(receive, end.take, output), name="hear an ACP client")
            telling = asyncio.create_task(output.tell(), name="tell an ACP client")
            # Whoever does not read keeps `tell` waiting.
            ending = asyncio.create_task(output.ended(), name="an ACP client is to leave")
            tasks = {hearing, telling, ending}
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                output.end(NORMAL)
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
        finally:
            self._open.discard(output)
            self._names[visitor.name] -= 1
            self._names += Counter()
            try:
                await end.close()
            except Exception:
                logger.exception("an ACP connection could not be closed")
            # It may be closed already, by either end.
            with suppress(Exception):
                async with asyncio.timeout(LAST_SECONDS):
                    await send({"type": "websocket.close", "code": output.code})

    async def close(self) -> None:
        """End all of them."""
        for output in tuple(self._open):
            output.end(GOING_AWAY)


class SocketOutput:
    """The `LineOutput` of the agent's end: each message goes out in a frame."""

    def __init__(self, visitor: Visitor, send: Send) -> None:
        self.code = NORMAL
        """Why it has ended."""
        self._visitor = visitor
        self._send = send
        self._lines: deque[bytes] = deque()
        self._size = 0
        self._news = asyncio.Event()
        self._sent = asyncio.Event()
        self._ended = asyncio.Event()

    def end(self, code: int) -> None:
        """Say no more."""
        if not self._ended.is_set():
            self._ended.set()
            self.code = code
            self._sent.set()

    async def ended(self) -> None:
        """Wait until nothing more is said."""
        await self._ended.wait()

    async def tell(self) -> None:
        """Send what is written, until the end."""
        while not self._ended.is_set():
            if not self._visitor.is_welcome():
                self.end(NOT_WELCOME)
                return
            if not self._lines:
                self._news.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(remote.KEEPALIVE_SECONDS):
                        await self._news.wait()
                continue
            line = self._lines.popleft()
            await self._send({"type": "websocket.send", "text": line.rstrip().decode()})
            self._size -= len(line)
            self._sent.set()

    @property
    def congested(self) -> bool:
        """Whether the agent should wait."""
        return not self._ended.is_set() and self._size > remote.MAX_UNREAD

    def write(self, data: bytes) -> None:
        """A message."""
        if self._ended.is_set():
            return
        self._lines.append(data)
        self._size += len(data)
        self._news.set()
        if self._size > remote.MAX_UNSENT:
            self.end(TOO_SLOW)

    def flush(self) -> None:
        """It is on its way already."""

    async def drain(self) -> None:
        """Wait until it is not congested; a client for whom that takes too long is let go of, and may come back."""
        if not await remote.caught_up(lambda: self.congested, self._sent):
            self.end(TOO_SLOW)


async def _hear(receive: Receive, take: Callable[[codec.RpcMessage], None], output: SocketOutput) -> None:
    """Take in what the client sends, until it leaves, and no more than it reads answers. What is not text is left
    aside."""
    while (frame := await receive())["type"] != "websocket.disconnect":
        text = frame.get("text")
        if text is None:
            continue
        data = text.encode("utf-8", "surrogatepass")
        take(codec.decode(data) if len(data) <= codec.MAX_LINE else codec.too_long(len(data)))
        if output.congested:
            await output.drain()
