"""A way to a Tryll server that bends what passes: how a server with a bad habit looks from outside."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.codec import MAX_FRAME, FrameError, decode, encode, frame

#: What takes the place of a frame: messages, or bytes as they are.
Put = Sequence[m.Message | bytes]
#: Gives what takes the place of a server's message; None leaves it as it is.
Answers = Callable[["Way", Any], "Put | m.Message | None"]
#: The same for what a client sends. Of a frame that is not a message there are only the bytes.
Requests = Callable[["Way", Any, bytes], "Put | m.Message | None"]


class Habit:
    """What a bent server does otherwise, and what it remembers across all of its connections."""

    def __init__(
        self,
        fails: tuple[str, ...],
        *,
        answers: Answers | None = None,
        requests: Requests | None = None,
        left: Callable[[Way, bool], None] | None = None,
        at_once: bool = False,
        stays: bool = False,
    ) -> None:
        self.fails = fails
        self.answers = answers
        self.requests = requests
        self.left = left
        self.stays = stays
        """It does not notice when a client ends."""
        self.lock = asyncio.Lock() if at_once else None
        """It writes to one client at a time, and waits until that one has read."""
        self.memory: dict[Any, Any] = {}


class Way:
    """One connection through it."""

    def __init__(self, habit: Habit, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self.habit = habit
        self.client = client
        self.server = server
        self.state: dict[Any, Any] = {}

    @property
    def memory(self) -> dict[Any, Any]:
        """Of all connections."""
        return self.habit.memory

    def tell(self, *put: m.Message | bytes) -> None:
        """Say something to the client."""
        self.client.write(_bytes(put))

    def refuse(self, request: Any, code: int, text: str = "no") -> Put:
        """Answer in place of the server; nothing is passed on."""
        self.tell(m.ErrorResponse(getattr(request, "request_id", 0), code, text))
        return ()

    async def from_server(self, message: m.Message, payload: bytes) -> None:
        put = self.habit.answers(self, message) if self.habit.answers else None
        data = frame(payload) if put is None else _bytes(put)
        if self.habit.lock is None:
            self.client.write(data)
            await self.client.drain()
            return
        async with self.habit.lock:
            self.client.write(data)
            await self.client.drain()

    async def from_client(self, payload: bytes) -> None:
        message: m.Message | None
        try:
            message = decode(payload)
        except FrameError:
            message = None
        put = self.habit.requests(self, message, payload) if self.habit.requests else None
        self.server.write(frame(payload) if put is None else _bytes(put))
        await self.server.drain()


def _bytes(put: Put | m.Message) -> bytes:
    each = (put,) if isinstance(put, m.Message) else put
    return b"".join(item if isinstance(item, bytes) else frame(encode(item)) for item in each)


async def _frames(reader: asyncio.StreamReader) -> AsyncIterator[tuple[bytes, bool]]:
    """Payloads, and whether they are whole; what is not comes last."""
    held = b""
    try:
        while True:
            held = b""
            held = await reader.readexactly(4)
            size = int.from_bytes(held, "little")
            if size > MAX_FRAME:
                yield held, False
                held = b""
                while data := await reader.read(1 << 16):
                    yield data, False
                return
            yield await reader.readexactly(size), True
    except asyncio.IncompleteReadError as error:
        if held + error.partial:
            yield held + error.partial, False


class Bent:
    """A server on loopback in front of another one."""

    def __init__(self, habit: Habit, host: str, port: int) -> None:
        self._habit = habit
        self._behind = (host, port)
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection(*self._behind)
        self._writers |= {writer, server_writer}
        way = Way(self._habit, writer, server_writer)
        both = [
            asyncio.create_task(self._up(way, reader)),
            asyncio.create_task(self._down(way, server_reader)),
        ]
        self._tasks |= set(both)
        await asyncio.gather(*both, return_exceptions=True)
        for each in (writer, server_writer):
            each.transport.abort()

    async def _up(self, way: Way, reader: asyncio.StreamReader) -> None:
        reset = False
        try:
            async for payload, whole in _frames(reader):
                if whole:
                    await way.from_client(payload)
                else:
                    way.server.write(payload)
        except ConnectionError:
            reset = True
        if self._habit.left:
            self._habit.left(way, reset)
        if reset:
            way.server.transport.abort()
        elif not self._habit.stays and not way.server.is_closing():
            way.server.write_eof()

    async def _down(self, way: Way, reader: asyncio.StreamReader) -> None:
        try:
            async for payload, whole in _frames(reader):
                if whole:
                    await way.from_server(decode(payload), payload)
        except ConnectionError:
            pass
        if not way.client.is_closing():
            way.client.write_eof()

    def close(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        for task in self._tasks:
            task.cancel()


@asynccontextmanager
async def bent(habit: Habit, host: str, port: int) -> AsyncIterator[tuple[str, int]]:
    """The address of a server with a habit, in front of a good one."""
    way = Bent(habit, host, port)
    server = await asyncio.start_server(way.serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()
    finally:
        server.close()
        way.close()
