"""Our ends of a child's pipes in an event loop: read with back-pressure, write without blocking."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable

from trunkline.base.process_pump import CHUNK_BYTES, LAST_LOOK_BYTES

#: Unread output is held up to here; then the child has to wait for its reader.
READ_LIMIT = 1 << 18
#: Unwritten input is held up to here, twice the longest line of the JSON stream; more is refused.
WRITE_LIMIT = 1 << 25
#: `drain` lets a writer go on when no more than this is unwritten.
WRITE_LOW = 1 << 16


class PipeReader:
    """Reads one pipe when there is something to read. Nothing is taken from the pipe before the first `read`."""

    def __init__(self, fd: int | None, on_end: Callable[[], None]) -> None:
        self.ended = fd is None
        self._loop = asyncio.get_running_loop()
        self._fd = fd
        self._on_end = on_end
        self._sink: Callable[[bytes], None] | None = None
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._listening = False
        self._waiter: asyncio.Future[None] | None = None
        if fd is not None:
            os.set_blocking(fd, False)

    async def read(self) -> bytes:
        """Everything that has come since the last call, at least one byte; empty at the end. Safe to cancel.

        Raises:
            RuntimeError: somebody else is reading.
        """
        if self._waiter is not None or self._sink is not None:
            raise RuntimeError("this output is being read already")
        self._listen()
        if not self._chunks and not self.ended:
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        data = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks.clear()
        self._size = 0
        self._listen()
        return data

    def feed_to(self, sink: Callable[[bytes], None]) -> None:
        """Give everything to `sink` from now on, instead of keeping it for `read`."""
        self._sink = sink
        while self._chunks:
            sink(self._chunks.popleft())
        self._size = 0
        self._listen()

    def finish(self) -> None:
        """The pipe's time is over: keep what lies in it, close it."""
        if self._fd is None:
            return
        seen = 0
        try:
            while seen < LAST_LOOK_BYTES and (data := os.read(self._fd, CHUNK_BYTES)):
                seen += len(data)
                self._keep(data)
        except OSError:
            # Empty, but held open by somebody: that is why its time had to be limited.
            seen = LAST_LOOK_BYTES
        self.close()

    def close(self) -> None:
        """Stop reading. What was read before can still be had."""
        if self._fd is None:
            return
        self._pause()
        os.close(self._fd)
        self._fd = None
        self.ended = True
        self._wake()
        self._on_end()

    def _listen(self) -> None:
        if self._fd is not None and not self._listening and self._size < READ_LIMIT:
            self._listening = True
            self._loop.add_reader(self._fd, self._on_readable)

    def _pause(self) -> None:
        if self._fd is not None and self._listening:
            self._listening = False
            self._loop.remove_reader(self._fd)

    def _on_readable(self) -> None:
        if self._fd is None:
            return
        try:
            data = os.read(self._fd, CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        self._keep(data)
        if self._size >= READ_LIMIT:
            self._pause()

    def _keep(self, data: bytes) -> None:
        if self._sink is not None:
            self._sink(data)
            return
        self._chunks.append(data)
        self._size += len(data)
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class PipeWriter:
    """Writes to one pipe as fast as the other end reads. That the other end is gone is a state, not an error."""

    def __init__(self, fd: int | None) -> None:
        self.broken = False
        self._loop = asyncio.get_running_loop()
        self._fd = fd
        self._pending: deque[memoryview] = deque()
        self._size = 0
        self._closing = False
        self._waiters: list[asyncio.Future[None]] = []
        if fd is not None:
            os.set_blocking(fd, False)

    def write(self, data: bytes) -> None:
        """Send `data`, now or as soon as there is room. Dropped when the pipe is closed or `broken`.

        Raises:
            BufferError: more than `WRITE_LIMIT` would be unwritten; nothing of `data` was taken. Call `drain` first.
        """
        if self._fd is None or self._closing or not data:
            return
        if self._pending and self._size + len(data) > WRITE_LIMIT:
            raise BufferError(f"{self._size} bytes are unwritten because the program does not read them")
        self._pending.append(memoryview(data))
        self._size += len(data)
        if len(self._pending) == 1:
            self._flush()
            if self._pending and self._fd is not None:
                self._loop.add_writer(self._fd, self._flush)

    async def drain(self) -> None:
        """Wait until little is unwritten, or nothing ever will be."""
        if self._size > WRITE_LOW:
            waiter = self._loop.create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            finally:
                self._waiters.remove(waiter)

    def close(self) -> None:
        """Let the child see the end of its input, behind all that was written."""
        self._closing = True
        if not self._pending:
            self.abort()

    def abort(self) -> None:
        """Close at once and drop what is unwritten."""
        if self._fd is not None:
            self._loop.remove_writer(self._fd)
            os.close(self._fd)
            self._fd = None
        self._closing = True
        self._pending.clear()
        self._size = 0
        self._wake()

    def _flush(self) -> None:
        try:
            while self._pending and self._fd is not None:
                head = self._pending[0]
                written = os.write(self._fd, head)
                self._size -= written
                if written == len(head):
                    self._pending.popleft()
                else:
                    self._pending[0] = head[written:]
        except BlockingIOError:
            if self._size <= WRITE_LOW:
                self._wake()
            return
        except OSError:
            self.broken = True
            self.abort()
            return
        if self._closing:
            self.abort()
        elif self._fd is not None:
            self._loop.remove_writer(self._fd)
        self._wake()

    def _wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
