"""The log in memory, and how any log is restored."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from trunkline.core.events import Checkpointed, Envelope, Event, Gap, ModeChanged, TextDelta
from trunkline.core.log import EventLog, MemoryLog, restore


def record(seq: int, event: Event | None = None) -> Envelope:
    return Envelope("s", seq, 1, 0.0, event or TextDelta(str(seq)))


def filled(count: int, keep: int = 100) -> MemoryLog:
    log = MemoryLog("s", keep)
    for seq in range(1, count + 1):
        log.append(record(seq))
    return log


def test_the_log_in_memory_is_an_event_log() -> None:
    log: EventLog = MemoryLog("s")
    assert log.session == "s"
    assert list(log.read()) == []
    assert log.restore().seq == 0


def test_records_are_read_back_in_order_from_any_number_on() -> None:
    log = filled(5)
    assert list(log.read()) == [record(seq) for seq in range(1, 6)]
    assert list(log.read(3)) == [record(4), record(5)]
    assert list(log.read(5)) == []


def test_what_was_forgotten_is_a_gap() -> None:
    log = filled(10, keep=3)
    assert list(log.read()) == [Gap(1, 7), record(8), record(9), record(10)]
    assert list(log.read(5)) == [Gap(6, 7), record(8), record(9), record(10)]
    assert list(log.read(7)) == [record(8), record(9), record(10)]
    assert log.restore().seq == 10


async def test_flushing_syncing_and_closing_change_nothing() -> None:
    log = filled(2)
    log.flush()
    await log.sync()
    log.close()
    log.close()
    assert list(log.read()) == [record(1), record(2)]


def test_what_is_discarded_is_forgotten() -> None:
    log = filled(2)
    log.discard()
    assert list(log.read()) == []


def test_restoring_folds_what_came_after_the_last_checkpoint_and_reads_no_further() -> None:
    def newest_first() -> Iterator[Envelope]:
        yield record(9)
        yield record(8, ModeChanged("yolo"))
        yield record(7, ModeChanged("auto_edit"))
        yield record(6, Checkpointed({"turns": 3, "mode": "default"}))
        pytest.fail("read further than the checkpoint")

    found = restore(newest_first())
    assert (found.seq, found.state.turns, found.state.mode) == (9, 3, "yolo")


def test_a_checkpoint_at_the_very_end_is_all_there_is_to_restore() -> None:
    found = restore(iter([record(6, Checkpointed({"turns": 3}))]))
    assert (found.seq, found.state.turns) == (6, 3)


def test_restoring_without_a_checkpoint_folds_everything() -> None:
    found = restore(iter([record(2, ModeChanged("yolo")), record(1, ModeChanged("default"))]))
    assert (found.seq, found.state.mode) == (2, "yolo")
    assert restore(iter([])).seq == 0
