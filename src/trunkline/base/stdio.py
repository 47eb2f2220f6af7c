"""Standard input and output as a protocol's own pipes, which nothing else can touch.

`base.claim` takes them over. Neither the reader nor the writer changes the mode of a pipe that other processes share,
where the system allows that.

What may make the event loop wait, and what may not:

- Reading: pipes, sockets and terminals are read when they have something; only if another process that shares them
  takes it first does the loop wait for more. What cannot be polled, files and some devices, is read by a thread.
- Writing to pipes and sockets never waits.
- Writing to a file, a terminal or another device waits as long as the system does: for a slow disk, and for a terminal
  whose output was stopped (Ctrl-S) until it goes on.
"""

from __future__ import annotations

import asyncio
import logging
import os
import select
import threading
from collections.abc import Callable

from trunkline.base.writing import non_blocking

logger = logging.getLogger(__name__)

#: One read. Small, because what it holds is handled before anything else has its turn: thousands of lines, at worst.
READ_BYTES = 4 * 1024
#: Unwritten output beyond which an agent is asked to wait, and below which it may go on.
HIGH_WATER = 1024 * 1024
LOW_WATER = 256 * 1024
#: How long the last lines may take to reach a peer that has stopped reading.
LAST_WRITE_SECONDS = 0.3


class StdinReader:
    """Gives whatever arrives on a descriptor to a callback, and the end of it to another.

    Nothing is read ahead of the callback by more than `READ_BYTES`, and nothing is given while it is paused. An error
    of the descriptor is its end: the peer is gone.
    """

    def __init__(self, fd: int, on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        self._fd = fd
        self._on_data = on_data
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._thread: _ReadingThread | None = None
        self._closed = False

    def start(self) -> None:
        """Begin to read. What can be polled is; what cannot be, such as a file, is read by a thread."""
        try:
            self._loop.add_reader(self._fd, self._readable)
        except OSError:
            self._thread = _ReadingThread(self._fd, self._loop, self._took)
            self._thread.resume()

    def pause(self) -> None:
        """Read no more for now."""
        if self._closed:
            return
        if self._thread is not None:
            self._thread.pause()
        else:
            self._loop.remove_reader(self._fd)

    def resume(self) -> None:
        """Read on."""
        if self._closed:
            return
        if self._thread is not None:
            self._thread.resume()
        else:
            self._loop.add_reader(self._fd, self._readable)

    def hung_up(self) -> bool:
        """Whether the peer has closed its end, which can be seen without reading what it sent before."""
        if self._thread is not None or self._closed:
            return False
        poller = select.poll()
        poller.register(self._fd, select.POLLHUP | getattr(select, "POLLRDHUP", 0))
        return bool(poller.poll(0))

    def close(self) -> None:
        """Read no more. Idempotent."""
        if self._closed:
            return
        self.pause()
        self._closed = True
        if self._thread is not None:
            self._thread.end()

    def _readable(self) -> None:
        try:
            data = os.read(self._fd, READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            # A terminal that went away, a connection that was reset.
            data = b""
        self._took(data)

    def _took(self, data: bytes) -> None:
        if data:
            self._on_data(data)
        else:
            self.close()
            self._on_end()


class _ReadingThread:
    """Reads what cannot be polled, one chunk at a time, each only after the one before it was taken.

    All methods but `_run` belong to the event loop. While the thread waits in a read, nothing can wake it; it is then
    left behind, and does not keep the process alive.
    """

    def __init__(self, fd: int, loop: asyncio.AbstractEventLoop, take: Callable[[bytes], None]) -> None:
        self._fd = fd
        self._loop = loop
        self._take = take
        self._paused = True
        self._ended = False
        self._reading = False
        """Whether the thread was asked for a chunk that has not come yet."""
        self._chunk: bytes | None = None
        """One that came during a pause."""
        self._asked = threading.Semaphore(0)
        threading.Thread(target=self._run, name="standard input", daemon=True).start()

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        # Not from within: whoever resumes does not expect to be given data before that returns.
        self._loop.call_soon(self._go_on)

    def end(self) -> None:
        self._ended = True
        self._chunk = None
        self._asked.release()

    def _go_on(self) -> None:
        """Give away the chunk that is there, then ask for the next, unless told to wait."""
        if self._paused or self._reading or self._ended:
            return
        if self._chunk is None:
            self._reading = True
            self._asked.release()
            return
        chunk, self._chunk = self._chunk, None
        # First, so that the next one is asked for even if this one raises.
        self._loop.call_soon(self._go_on)
        self._take(chunk)

    def _came(self, chunk: bytes) -> None:
        self._reading = False
        self._chunk = chunk
        self._go_on()

    def _run(self) -> None:
        chunk = b"-"
        while chunk:
            self._asked.acquire()
            if self._ended:
                return
            try:
                chunk = os.read(self._fd, READ_BYTES)
            except OSError:
                chunk = b""
            try:
                self._loop.call_soon_threadsafe(self._came, chunk)
            except RuntimeError:
                # The loop was closed: nobody is left to tell.
                return


class Writer:
    """Writes to a pipe or a socket without ever waiting for its reader; to anything else as the system does."""

    def __init__(self, fd: int, on_broken: Callable[[], None]) -> None:
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        self._held: list[bytes] = []
        self._pending = bytearray()
        self._waiting = False
        self._room = asyncio.Event()
        self._room.set()
        self._empty = asyncio.Event()
        self.broken = False
        self.error: OSError | None = None
        """What broke it."""
        self.congested = False
        """Whether the reader is so far behind that no more should be said. Asked after every event: not a property."""
        self._fd, self._send = non_blocking(fd)

    @property
    def unwritten(self) -> int:
        """Bytes that wait for the reader."""
        return len(self._pending)

    def write(self, data: bytes) -> None:
        """Hold some bytes until `flush`."""
        self._held.append(data)

    def flush(self) -> None:
        """Write what is held, as far as it goes; the rest follows when the reader has made room."""
        if self._held:
            self._pending += b"".join(self._held)
            self._held.clear()
        if self._pending and not self._waiting:
            self._write()
        else:
            self._measure()

    async def drain(self) -> None:
        """Wait until it is not congested."""
        await self._room.wait()

    async def emptied(self) -> None:
        """Wait until everything is written, however long the reader takes, or nobody reads any more."""
        self.flush()
        if self._pending:
            self._empty.clear()
            await self._empty.wait()

    async def close(self) -> None:
        """Write the rest, but wait no longer than `LAST_WRITE_SECONDS` for a reader that does not read."""
        self.flush()
        if self._pending:
            self._empty.clear()
            try:
                async with asyncio.timeout(LAST_WRITE_SECONDS):
                    await self._empty.wait()
            except TimeoutError:
                logger.warning("%d bytes of output were not read", len(self._pending))
        self._break()

    def _write(self) -> None:
        try:
            while self._pending:
                written = self._send(self._pending)
                del self._pending[:written]
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            self.error = error
            self._break()
            self._on_broken()
            return
        waiting = bool(self._pending)
        if waiting and not self._waiting:
            self._loop.add_writer(self._fd, self._write)
        elif self._waiting and not waiting:
            self._loop.remove_writer(self._fd)
        self._waiting = waiting
        if not waiting:
            self._empty.set()
        self._measure()

    def _measure(self) -> None:
        if len(self._pending) > HIGH_WATER:
            self.congested = True
            self._room.clear()
        elif len(self._pending) < LOW_WATER:
            self.congested = False
            self._room.set()

    def _break(self) -> None:
        """Nobody reads any more: forget what was to be said, and let nobody wait for it."""
        if self._waiting:
            self._loop.remove_writer(self._fd)
            self._waiting = False
        self.broken = True
        self._pending.clear()
        self._held.clear()
        self.congested = False
        self._room.set()
        self._empty.set()
        self._send = len
