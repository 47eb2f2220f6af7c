"""Write to somebody who may take their time, and know when to stop waiting for them."""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Iterator

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
