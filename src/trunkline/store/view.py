"""A session's log file, looked at without taking it from whoever is writing it.

Nothing is locked and nothing is changed; a record that is being written at this moment is not seen yet.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain

from trunkline.base.values import Value
from trunkline.core.events import Envelope, Gap
from trunkline.core.log import SessionInfo
from trunkline.store import deltas, logfile
from trunkline.store.reading import with_gaps


class SessionView(Value):
    """One session: what its log says of itself, and its records in order, to be read once."""

    info: SessionInfo
    records: Iterator[Envelope | Gap]


def view(path: str) -> SessionView:
    """Look at a log.

    Raises:
        NotALog: it does not begin like one.
        OSError: it cannot be opened.
    """
    return SessionView(info(path), _records(path))


def info(path: str) -> SessionInfo:
    """What a log says of itself.

    Raises:
        NotALog: it does not begin like one.
        OSError: it cannot be opened.
    """
    with _opened(path) as fd:
        header, _ = logfile.read_header(fd)
        updated = os.fstat(fd).st_mtime
    return SessionInfo(header.session, header.workspace, header.created, updated, header.agent, header.given)


def _records(path: str) -> Iterator[Envelope | Gap]:
    """As many as there are when the first of them is asked for; until then no file is held open."""
    with _opened(path) as fd:

        def read_at(length: int, offset: int) -> bytes:
            return os.pread(fd, length, offset)

        header, start = logfile.read_header(fd)
        # Before the log: what leaves the one while we read is in the other.
        beside = deltas.read(path, header.session, deltas.mark(header))
        end, last = logfile.last_record(read_at, start, os.fstat(fd).st_size)
        under_way = list(deltas.missing(beside, last))
        lines = logfile.lines_forward(read_at, start, end)
        found = (logfile.decode_events(header.session, line) for _, line in lines)
        yield from with_gaps(chain(chain.from_iterable(found), under_way), 0, last + len(under_way))


@contextmanager
def _opened(path: str) -> Iterator[int]:
    # What is no file at all, such as a named pipe, must not make us wait for somebody to write to it.
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        yield fd
    finally:
        os.close(fd)
