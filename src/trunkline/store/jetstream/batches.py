"""The messages in which the events of a session are in the stream.

A message holds lines of a log file, whole ones as a rule. A batch that is longer than servers take is several messages
with the same `Trunkline-Batch`; it counts when all of them are there, and its writer shows none of it before that. A
writer that is gone in the middle of one leaves the rest out for ever: the next owner's events have the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from trunkline.core.events import Envelope, TextDelta, ThinkingDelta
from trunkline.store import logfile
from trunkline.store.deltas import DeltaRun

#: The longest part of a batch: servers take 1 MiB unless told otherwise, the headers included.
PART_BYTES = 900_000

BATCH = "Trunkline-Batch"


class Batch:
    """Events that are gathered, as lines. Deltas that follow each other share one."""

    def __init__(self) -> None:
        self.first = 0
        """The number of the first."""
        self._lines: list[bytes] = []
        self._run = DeltaRun()

    def __bool__(self) -> bool:
        return bool(self._lines or self._run.deltas)

    def add(self, envelope: Envelope) -> int:
        """One more; gives how many bytes it takes.

        Raises:
            TypeError: it holds something that is not JSON, or is nested too deep. It is not added.
        """
        first, event = envelope.seq if not self else self.first, envelope.event
        if type(event) is TextDelta or type(event) is ThinkingDelta:
            size = self._run.add(envelope, event.text)
            if not size:
                self._lines.append(self._run.taken())
                size = self._run.add(envelope, event.text)
        else:
            line = logfile.encode_record(envelope)
            if self._run.deltas:
                self._lines.append(self._run.taken())
            self._lines.append(line)
            size = len(line)
        self.first = first
        return size

    def taken(self) -> bytes:
        """The lines of all of them, which are forgotten."""
        if self._run.deltas:
            self._lines.append(self._run.taken())
        lines, self._lines = b"".join(self._lines), []
        return lines


def encode(envelopes: Sequence[Envelope]) -> bytes:
    """The lines of some events."""
    batch = Batch()
    for envelope in envelopes:
        batch.add(envelope)
    return batch.taken()


def parts(name: str, data: bytes) -> Iterator[tuple[dict[str, str], bytes]]:
    """The messages of a batch: their headers and what they hold. `name` is like no other's in the session."""
    count = -(-len(data) // PART_BYTES) or 1
    for number in range(count):
        piece = data[number * PART_BYTES : (number + 1) * PART_BYTES]
        yield {BATCH: f"{name} {number + 1} {count}"}, piece


class BatchReader:
    """Puts the messages of one session together, in their order."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._name = ""
        self._pieces: list[bytes] = []

    @property
    def is_between(self) -> bool:
        """Whether the rest of a batch may be still to come."""
        return bool(self._pieces)

    def leave(self) -> None:
        """Its writer is another's now: the rest of a batch never comes."""
        self._pieces = []

    def take(self, headers: Mapping[str, str] | None, data: bytes) -> Sequence[Envelope]:
        """The events that are whole with this message."""
        name, number, count = _numbered((headers or {}).get(BATCH, ""))
        if number == 1:
            self._name, self._pieces = name, []
        if name != self._name or number != len(self._pieces) + 1:
            # The rest of a batch whose beginning is not here.
            self._pieces = []
            return ()
        self._pieces.append(data)
        if number < count:
            return ()
        lines = b"".join(self._pieces).split(b"\n")
        self._pieces = []
        return [envelope for line in lines[:-1] for envelope in logfile.decode_events(self._session, line)]


def _numbered(text: str) -> tuple[str, int, int]:
    name, number, count = text.rsplit(" ", 2) if text.count(" ") >= 2 else (text, "1", "1")
    return name, int(number), int(count)
