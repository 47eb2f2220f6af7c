"""Events of one session in the log of another."""

from __future__ import annotations

from collections.abc import Iterable

from trunkline.core.events import Envelope
from trunkline.core.log import EventLog

#: How much of a log is held in memory while it is copied.
COPIED_BYTES = 1024 * 1024


def copy(events: Iterable[Envelope], log: EventLog) -> int:
    """Append all of them; gives the last turn of them.

    Raises:
        OSError: they cannot be written.
    """
    held = turns = 0
    for envelope in events:
        turns = max(turns, envelope.turn)
        held += log.append(envelope)
        if held >= COPIED_BYTES:
            log.flush()
            held = 0
    log.flush()
    return turns
