"""What every store promises, whatever it is made of."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.event_strategies import envelopes
from tests.store.shelves import Shelf, checkpoint, fill, kept, numbers, record
from trunkline.core import records
from trunkline.core.events import (
    Checkpointed,
    Extension,
    ModeChanged,
    Notice,
    TextDelta,
    TurnEnded,
    TurnStarted,
    UserMessage,
)
from trunkline.core.faults import SessionNotFound
from trunkline.core.log import SessionStore

# Appending and reading


def test_a_new_session_is_empty(store: SessionStore) -> None:
    log = store.create("s", "/w")
    assert log.session == "s"
    assert list(log.read()) == []
    assert log.restore().seq == 0
    assert log.restore().state.turns == 0


def test_records_are_read_back_in_order_before_and_after_flush_and_reopening(store: SessionStore) -> None:
    log = store.create("s", "/w")
    added = fill(log, range(1, 4))
    assert list(log.read()) == added
    log.flush()
    assert list(log.read()) == added
    added += fill(log, range(4, 6))
    assert list(log.read()) == added
    log.close()
    assert kept(store) == added


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_every_event_survives_the_way_to_the_disk_and_back(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    shelf = Shelf(tmp_path_factory.mktemp("round"))
    try:
        store = shelf.store()
        log = store.create("s", "/w")
        added = data.draw(envelopes("s"))
        for envelope in added:
            log.append(envelope)
        log.close()
        assert kept(store) == added
    finally:
        shelf.close()


@pytest.mark.parametrize("text", ["x" * 2**20, "\ud800\0" * 2**18, "\n" * 2**20, "\U0001f600" * 2**18])
def test_a_text_of_a_mebibyte_survives(store: SessionStore, text: str) -> None:
    log = store.create("s", "/w")
    added = [record(1), record(2, TextDelta(text)), record(3)]
    sizes = [log.append(envelope) for envelope in added]
    log.close()
    assert sizes[1] >= 2**20
    log = store.open("s")
    assert list(log.read()) == added
    assert list(log.read(2)) == added[2:]


def test_append_says_how_many_bytes_a_record_takes(store: SessionStore) -> None:
    log = store.create("s", "/w")
    small = log.append(record(1, Notice("a")))
    assert log.append(record(2, Notice("a" * 101))) == small + 100


def test_reading_since_a_number_gives_what_comes_after_it(store: SessionStore) -> None:
    log = store.create("s", "/w")
    added = fill(log, range(1, 2001))
    log.flush()
    added += fill(log, range(2001, 2011))
    for since in (0, 1, 2, 999, 1000, 1998, 1999, 2000, 2001, 2009):
        assert list(log.read(since)) == added[since:]
    assert list(log.read(2010)) == []
    assert list(log.read(9999)) == []


def test_missing_numbers_are_one_gap_each_time(store: SessionStore) -> None:
    log = store.create("s", "/w")
    fill(log, [3, 4, 8])
    for _ in range(2):
        assert numbers(log.read()) == [(1, 2), 3, 4, (5, 7), 8]
        assert numbers(log.read(3)) == [4, (5, 7), 8]
        assert numbers(log.read(5)) == [(6, 7), 8]
        log.flush()


def test_reading_goes_on_undisturbed_while_records_are_added(store: SessionStore) -> None:
    log = store.create("s", "/w")
    fill(log, range(1, 4))
    log.flush()
    fill(log, range(4, 6))
    reader = log.read()
    assert numbers([next(reader)]) == [1]
    log.flush()
    fill(log, range(6, 8))
    assert numbers(reader) == [2, 3, 4, 5]
    assert numbers(log.read(5)) == [6, 7]


def test_a_number_that_is_not_above_the_last_is_refused(store: SessionStore) -> None:
    log = store.create("s", "/w")
    fill(log, [1, 2])
    for seq in (0, 1, 2):
        with pytest.raises(ValueError, match=f"record {seq} comes after record 2"):
            log.append(record(seq))
    log.close()
    log = store.open("s")
    with pytest.raises(ValueError, match="after record 2"):
        log.append(record(2))
    assert numbers(log.read()) == [1, 2]


def test_an_event_that_is_not_json_is_refused_and_leaves_no_trace(store: SessionStore) -> None:
    log = store.create("s", "/w")
    with pytest.raises(TypeError):
        log.append(record(1, Extension("k", {"a": object()})))
    added = fill(log, [1])
    log.close()
    assert kept(store) == added


def _nested(levels: int) -> dict[str, Any]:
    """An object with lists in it, so many levels altogether."""
    inner: list[Any] = []
    for _ in range(levels - 2):
        inner = [inner]
    return {"a": inner}


#: The record itself and its event.
_AROUND = 2


def test_what_is_nested_as_deep_as_can_be_read_is_kept(store: SessionStore) -> None:
    log = store.create("s", "/w")
    added = [record(1, Extension("k", _nested(records.MAX_DEPTH - _AROUND)))]
    added += [record(2, Extension("k", {"a": [[]] * 1000})), record(3, TextDelta("[{" * 1000))]
    for envelope in added:
        log.append(envelope)
    assert list(log.read()) == added
    log.close()
    assert kept(store) == added


@pytest.mark.parametrize("levels", [records.MAX_DEPTH - _AROUND + 1, records.MAX_DEPTH + 1, 5000])
def test_what_is_nested_too_deep_to_be_read_back_is_refused_and_leaves_no_trace(
    store: SessionStore, levels: int
) -> None:
    log = store.create("s", "/w")
    with pytest.raises(TypeError):
        log.append(record(1, Extension("k", _nested(levels))))
    added = fill(log, [1])
    log.close()
    assert kept(store) == added


# Restoring


def test_restoring_takes_the_last_checkpoint_and_what_came_after(store: SessionStore) -> None:
    log = store.create("s", "/w")
    added = [checkpoint(1, 10), checkpoint(2, 20), record(3, TurnStarted(UserMessage("hi")), turn=21), record(4)]
    added += [record(5, ModeChanged("yolo")), record(6, TurnEnded("success"), turn=21)]
    for envelope in added:
        log.append(envelope)
        log.flush()
    for _ in range(2):
        found = log.restore()
        assert found.seq == 6
        assert (found.state.turns, found.state.mode, found.state.open_turns) == (21, "yolo", {})
        log.close()
        log = store.open("s")


def test_restoring_without_a_checkpoint_takes_everything(store: SessionStore) -> None:
    log = store.create("s", "/w")
    log.append(record(1, TurnStarted(UserMessage("hi"))))
    log.flush()
    log.append(record(2, ModeChanged("yolo")))
    found = log.restore()
    assert (found.seq, found.state.mode, list(found.state.open_turns)) == (2, "yolo", [1])


def test_a_checkpoint_that_cannot_be_read_is_passed_over(store: SessionStore) -> None:
    log = store.create("s", "/w")
    log.append(checkpoint(1, 10))
    log.append(record(2, ModeChanged("yolo")))
    log.append(record(3, Checkpointed({"turns": "from the future"})))
    log.append(record(4))
    found = log.restore()
    assert (found.seq, found.state.turns, found.state.mode) == (4, 10, "yolo")


# Closing


def test_a_closed_log_takes_and_gives_nothing_more(store: SessionStore) -> None:
    log = store.create("s", "/w")
    added = fill(log, [1])
    reader = log.read()
    next(reader)
    log.close()
    log.close()
    log.flush()
    for attempt in (lambda: log.append(record(2)), log.restore, lambda: list(log.read())):
        with pytest.raises(ValueError, match="session 's' is closed"):
            attempt()
    assert kept(store) == added


def test_closing_in_the_middle_of_reading_ends_the_reading_with_an_error(store: SessionStore) -> None:
    log = store.create("s", "/w")
    log.append(record(1, TextDelta("x" * 10**6)))
    log.append(record(2, TextDelta("x" * 10**6)))
    log.flush()
    reader = log.read()
    next(reader)
    log.close()
    with pytest.raises(ValueError, match="is closed"):
        next(reader)


@pytest.mark.parametrize("is_flushed", [False, True])
def test_a_session_that_never_began_can_be_discarded_and_its_id_had_again(shelf: Shelf, is_flushed: bool) -> None:
    store = shelf.store()
    before = shelf.files()
    log = store.create("s", "/w")
    fill(log, [1])
    if is_flushed:
        log.flush()
    log.discard()
    log.discard()
    log.close()
    assert shelf.files() == before
    with pytest.raises(SessionNotFound):
        store.open("s")
    assert list(store.create("s", "/w").read()) == []


def test_a_session_that_was_opened_is_not_discarded_but_closed(store: SessionStore) -> None:
    log = store.create("s", "/w")
    fill(log, [1])
    log.close()
    log = store.open("s")
    fill(log, [2])
    log.discard()
    assert numbers(kept(store)) == [1, 2]


# Being private


def test_nobody_else_can_read_what_is_kept(shelf: Shelf) -> None:
    log = shelf.store().create("s", "/w")
    fill(log, [1])
    log.flush()
    for path in shelf.root.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path
