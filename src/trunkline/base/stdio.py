"""Standard input and output as a protocol's own pipes, which nothing else can touch.

`claim` moves them to private descriptors: afterwards descriptor 0 is `/dev/null` and descriptor 1 is standard error,
for us, for every library that prints, and for every child. Neither the reader nor the writer ever blocks the event
loop, and neither changes the mode of a pipe that other processes share, where the system allows that.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import stat
import threading
from collections.abc import Callable

logger = logging.getLogger(__name__)

#: One read: as much as a pipe holds by default.
READ_BYTES = 64 * 1024
#: Unwritten output beyond which an agent is asked to wait, and below which it may go on.
HIGH_WATER = 1024 * 1024
LOW_WATER = 256 * 1024
#: How long the last lines may take to reach a peer that has stopped reading.
LAST_WRITE_SECONDS = 0.3


def claim() -> tuple[int, int]:
    """Take over standard input and output; gives the private descriptors.

    Raises:
        OSError: one of them is closed.
    """
    reading, writing = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    try:
        os.dup2(2, 1)
    except OSError:
        os.dup2(null, 1)
    os.close(null)
    return reading, writing


class Reader:
    """Gives whatever arrives on a descriptor to a callback, and the end of it to another."""

    def __init__(self, fd: int, on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        self._fd = fd
        self._on_data = on_data
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._polled = False
        self._closed = False

    def start(self) -> None:
        """Begin to read. Pipes, sockets and terminals are polled; files, which cannot be, are read by a thread."""
        try:
            self._loop.add_reader(self._fd, self._readable)
            self._polled = True
        except PermissionError:
            threading.Thread(target=self._read_file, name="standard input", daemon=True).start()

    def pause(self) -> None:
        """Read no more for now. A file is at its end soon enough."""
        if self._polled and not self._closed:
            self._loop.remove_reader(self._fd)

    def resume(self) -> None:
        """Read on."""
        if self._polled and not self._closed:
            self._loop.add_reader(self._fd, self._readable)

    def close(self) -> None:
        """Read no more. Idempotent."""
        if not self._closed:
            self.pause()
            self._closed = True

    def _readable(self) -> None:
        try:
            data = os.read(self._fd, READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            # A terminal that went away, a connection that was reset: the peer is gone.
            data = b""
        self._took(data)

    def _took(self, data: bytes) -> None:
        if self._closed:
            return
        if data:
            self._on_data(data)
        else:
            self.close()
            self._on_end()

    def _read_file(self) -> None:
        data = b"-"
        while data and not self._closed:
            data = os.read(self._fd, READ_BYTES)
            self._loop.call_soon_threadsafe(self._took, data)


class Writer:
    """Writes to a descriptor without ever waiting for its reader."""

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
        self.congested = False
        """Whether the reader is so far behind that no more should be said. Asked after every event: not a property."""
        self._fd, self._send = _non_blocking(fd)

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

    async def close(self) -> None:
        """Write the rest, but wait no longer than `LAST_WRITE_SECONDS` for a reader that does not read."""
        self.flush()
        if self._pending:
            self._empty.clear()
            try:
                await asyncio.wait_for(self._empty.wait(), LAST_WRITE_SECONDS)
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
        except OSError:
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


def _non_blocking(fd: int) -> tuple[int, Callable[[bytearray], int]]:
    """A descriptor to poll, and a way to write to it that never waits.

    Setting `O_NONBLOCK` would change the pipe for everybody who shares it, the parent's other children included. A
    socket has a flag per call for this; a pipe can be opened once more, on Linux. Files and terminals are just written.
    """
    mode = os.fstat(fd).st_mode
    if stat.S_ISSOCK(mode):
        connection = socket.socket(fileno=fd)
        return fd, lambda data: connection.send(data, socket.MSG_DONTWAIT)
    if stat.S_ISFIFO(mode):
        try:
            fd = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            # No such file system, or a pipe that another user made.
            if error.errno not in (errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENXIO):
                raise
            os.set_blocking(fd, False)
    return fd, lambda data: os.write(fd, data)
