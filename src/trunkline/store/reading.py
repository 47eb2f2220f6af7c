"""What is made of the records that are read back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from trunkline.base.shapes import ShapeError
from trunkline.core import log
from trunkline.core.events import Checkpointed, Envelope, Gap
from trunkline.core.log import Restored
from trunkline.core.state import SessionState


def with_gaps(records: Iterable[Envelope], since: int, last: int) -> Iterator[Envelope | Gap]:
    """The records after `since`, and a `Gap` wherever some up to `last` are missing."""
    expected = since + 1
    for envelope in records:
        if envelope.seq < expected:
            continue
        if envelope.seq > expected:
            yield Gap(expected, envelope.seq - 1)
        yield envelope
        expected = envelope.seq + 1
    if expected <= last:
        yield Gap(expected, last)


def restored(newest_first: Iterable[Envelope], last: int) -> Restored:
    """The state that the records add up to; `last` is the number of the last one, also if it cannot be read.

    A checkpoint that this version cannot read is passed over: the events before it say the same at more length.
    """
    found = log.restore(envelope for envelope in newest_first if _is_usable(envelope))
    return Restored(max(found.seq, last), found.state, found.records)


def _is_usable(envelope: Envelope) -> bool:
    event = envelope.event
    if isinstance(event, Checkpointed):
        try:
            SessionState.from_snapshot(event.state)
        except ShapeError:
            return False
    return True
