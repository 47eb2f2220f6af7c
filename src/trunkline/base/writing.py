"""Write to somebody who may take their time, and know when to stop waiting for them. Without an event loop."""

from __future__ import annotations

import errno
import os
import select
import signal
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress

#: How a program ends whose output nobody reads.
EXIT_BROKEN_PIPE = 128 + signal.SIGPIPE
#: What a pipe takes at once when it says that there is room: a larger piece might wait for its reader.
_PIECE_BYTES = select.PIPE_BUF
#: How often somebody who waits is asked whether that still makes sense.
_LOOK_MS = 50


class Unread(OSError):
    """The reader does not read, and it was not worth waiting any longer."""


def write_all(fd: int, data: bytes, *, waits: Callable[[], bool] = lambda: True) -> None:
    """Write everything, whatever mode the descriptor is in. `waits` says whether to go on waiting for the reader.

    Raises:
        Unread: it was not read, and `waits` said no.
        OSError: it cannot be written; `BrokenPipeError` when nobody reads.
    """
    for _ in written(fd, data, waits=waits):
        pass


def written(fd: int, data: bytes, *, waits: Callable[[], bool] = lambda: True) -> Iterator[int]:
    """Write everything, piece by piece; gives how much is left after each piece.

    Raises:
        OSError: as `write_all`.
    """
    poller = select.poll()
    poller.register(fd, select.POLLOUT)
    rest = memoryview(data)
    while rest:
        if not poller.poll(_LOOK_MS):
            if not waits():
                raise Unread(f"{len(rest)} bytes of output were not read")
            continue
        try:
            rest = rest[os.write(fd, rest[:_PIECE_BYTES]) :]
        except BlockingIOError:
            # Somebody who shares it was quicker to fill it.
            continue
        yield len(rest)


def write_or_drop(fd: int) -> Callable[[bytes], None]:
    """A way to write to somebody who may not read, or not be there: what they have no room for is lost."""
    try:
        send = non_blocking(fd)[1]
    except OSError:
        return lambda data: None

    def write(data: bytes) -> None:
        with suppress(OSError):
            send(bytearray(data))

    return write


def non_blocking(fd: int) -> tuple[int, Callable[[bytearray], int]]:
    """A descriptor to poll, and a way to write to it that does not wait for a pipe's or a socket's reader.

    Setting `O_NONBLOCK` would change the pipe for everybody who shares it, the parent's other children included. A
    socket has a flag per call for this; a pipe can be opened once more, on Linux. For files, terminals and other
    devices there is no such way: writing to them waits as long as the system does.
    """
    mode = os.fstat(fd).st_mode
    if stat.S_ISSOCK(mode):
        import socket

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
