"""What a list shows of a session, read from the two ends of its log: long sessions cost no more than short ones."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice

from trunkline.base.values import Value
from trunkline.core.events import Envelope, TurnStarted
from trunkline.store import logfile

#: The first message is among so many records at the beginning, and one of a turn among so many at the end.
GLANCE_RECORDS = 100
#: As much of the first message as anybody reads in a list.
LONGEST_TITLE = 200


class SessionGlance(Value):
    """What tells a session from others: its first message, and how many there were."""

    title: str = ""
    turns: int = 0


def glance(path: str) -> SessionGlance:
    """What a session is about, as far as its log can be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return SessionGlance()
    try:
        return _glance(fd)
    except (OSError, logfile.NotALog):
        return SessionGlance()
    finally:
        os.close(fd)


def _glance(fd: int) -> SessionGlance:
    def read_at(length: int, offset: int) -> bytes:
        return os.pread(fd, length, offset)

    header, start = logfile.read_header(fd)
    end = os.fstat(fd).st_size

    def envelopes(lines: Iterator[tuple[int, bytes]]) -> Iterator[Envelope]:
        found = (logfile.decode_record(header.session, line) for _, line in islice(lines, GLANCE_RECORDS))
        return (envelope for envelope in found if envelope is not None)

    first = (envelope.event for envelope in envelopes(logfile.lines_forward(read_at, start, end)))
    title = next((event.message.text for event in first if isinstance(event, TurnStarted)), "")
    # Outside turns the number is 0.
    turns = (envelope.turn for envelope in envelopes(logfile.lines_backward(read_at, start, end)))
    return SessionGlance(" ".join(title.split())[:LONGEST_TITLE], next(filter(None, turns), 0))
