"""Write all of something to a descriptor, and wait for its reader, whatever mode the descriptor is in."""

from __future__ import annotations

import os
from collections.abc import Iterator


def write_all(fd: int, data: bytes) -> None:
    """Write everything. Where the descriptor does not wait by itself (`O_NONBLOCK`), this does.

    Raises:
        OSError: it cannot be written; `BrokenPipeError` when nobody reads.
    """
    for _ in written(fd, data):
        pass


def written(fd: int, data: bytes) -> Iterator[int]:
    """Write everything, piece by piece; gives how much is left after each piece.

    Raises:
        OSError: as `write_all`.
    """
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(fd, rest) :]
        except BlockingIOError:
            # Somebody who shares it has changed its mode, which is theirs to do.
            _wait(fd)
        yield len(rest)


def _wait(fd: int) -> None:
    import select

    poller = select.poll()
    poller.register(fd, select.POLLOUT)
    poller.poll()
