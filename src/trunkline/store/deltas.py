"""The deltas of an answer under way. As soon as something else comes they are one record of the log; until then they
stand in a file beside it, a line for those that came at a time, so that they outlive the process.

    trunkline-tail 5f2b8c11
    9c4e6a02 {"seq":7,"turn":2,"at":1763179200.125,"event":"TextDelta","data":{"text":"Hello"}}
    1d0f7a3e {"seq":9,"turn":2,"at":1763179200.136,"event":"TextDelta","data":{"text":", you","parts":[2,3]}}

The digits in the first line say whose it is, by the session's id and the time it began: a log that came to its place
in another way has others. The file is written from its beginning again and again, and removed when the log is closed.
What counts in it are whole lines with numbers that the log does not have; the others are left from deltas that it has
by now.
"""

from __future__ import annotations

import os
from binascii import crc32
from collections.abc import Iterator, Sequence
from contextlib import suppress

from trunkline.core.events import Envelope, Event, TextDelta, ThinkingDelta
from trunkline.store import locks, logfile

#: What becomes one record at most: a reader, and the process itself, holds that much. A single delta may be longer.
MAX_BYTES = 64 * 1024

#: What a record has besides its text, and each delta in it besides its own: a frame, and a length.
_RECORD_BYTES = 128
_DELTA_BYTES = 4

_ENDING = ".tail"
_MAGIC = b"trunkline-tail "


class DeltaRun:
    """Deltas of one kind and one turn that follow each other."""

    def __init__(self) -> None:
        self.deltas: list[Envelope] = []
        self.kept = 0
        """How many of them stand in the file beside the log."""
        self._kind: type[Event] = Event
        self._turn = 0
        self._room = 0

    def add(self, delta: Envelope, text: str) -> int:
        """Take one more, and say how many bytes it takes; 0 if it does not belong here."""
        deltas = self.deltas
        size = (len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))) + _DELTA_BYTES
        self._room -= size
        if not deltas:
            self._kind, self._turn = type(delta.event), delta.turn
            self._room = MAX_BYTES - size
            size += _RECORD_BYTES
        elif (
            self._room < 0
            or type(delta.event) is not self._kind
            or delta.turn != self._turn
            or delta.seq != deltas[-1].seq + 1
        ):
            return 0
        deltas.append(delta)
        return size

    def taken(self) -> bytes:
        """The record of all of them, which are forgotten."""
        line = logfile.encode_deltas(self.deltas)
        self.deltas, self.kept = [], 0
        return line

    def line(self, start: int = 0) -> bytes:
        """A line of those from one of them on; nothing if there are none."""
        return logfile.encode_deltas(self.deltas[start:]) if len(self.deltas) > start else b""


class Tail:
    """The file beside a log. Made when it is needed. `mark` says of which one."""

    def __init__(self, log: str, mark: int) -> None:
        self._path = log + _ENDING
        self._head = _head(mark)
        self._fd = -1
        self._end = 0

    def write(self, lines: bytes) -> None:
        """Add lines, so that they outlive the process.

        Raises:
            OSError: they could not be written; what the file has of them does not count, and is written over.
        """
        if self._fd < 0:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, locks.PRIVATE_FILE)
            self._end = 0
        if not self._end:
            lines = self._head + lines
        end, rest = self._end, memoryview(lines)
        while rest:
            written = os.pwrite(self._fd, rest, end)
            end, rest = end + written, rest[written:]
        self._end = end

    def start_over(self) -> None:
        """The log has all that stands here."""
        self._end = min(self._end, len(self._head))

    def close(self, *, remove: bool) -> None:
        """Let go of the file; `remove` it if the log has all that stands there. Idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if remove:
            with suppress(OSError):
                os.unlink(self._path)


def read(log: str, session: str, mark: int) -> Sequence[Envelope]:
    """What stands beside a log, in order, also what the log has by now; nothing where there is no such file."""
    try:
        with open(log + _ENDING, "rb") as file:
            head, *lines = file.read().split(b"\n")
    except OSError:
        return ()
    if head + b"\n" != _head(mark):
        return ()
    found = (delta for line in lines for delta in logfile.decode_events(session, line))
    return sorted(found, key=lambda delta: delta.seq)


def missing(deltas: Sequence[Envelope], last: int) -> Iterator[Envelope]:
    """Those of them that come right after the last record of the log.

    Only those: the log has everything before them, unless a power cut took it back, and then they say nothing.
    """
    for delta in deltas:
        if delta.seq == last + 1 and isinstance(delta.event, (TextDelta, ThinkingDelta)):
            last = delta.seq
            yield delta


def mark(header: logfile.Header) -> int:
    """How the log is recognised that a file stands beside."""
    return crc32(f"{header.created} {header.session}".encode("utf-8", "surrogatepass"))


def _head(mark: int) -> bytes:
    return b"%b%08x\n" % (_MAGIC, mark)
