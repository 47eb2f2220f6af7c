"""What every store promises, whatever it is made of."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.event_strategies import envelopes
from tests.store.shelves import KINDS, Kind, Shelf, checkpoint, fill, kept, numbers, record
from trunkline.core.events import (
    Checkpointed,
    Extension,
    Gap,
    ModeChanged,
    TextDelta,
    TurnEnded,
    TurnStarted,
    UserMessage,
)
from trunkline.core.faults import ConfigError, SessionExists, SessionHeld, SessionNotFound
from trunkline.core.log import SessionStore

NASTY_IDS = [
    "plain-id_7.x", "Case", "case", "/", "..", ".", "../../etc/passwd", "a/b", ".hidden", "nul\0byte", "line\nfeed",
    "é", "e\u0301", "\U0001f600", "\ud800", "\udc80\udc80", "%2f", "~", "con", " ", "a.log", "a.log.damaged-1", "-rf",
    "*", "x" * 10_000, "X" * 10_000, "x" * 9_999 + "/", "\ud800" * 10_000,
]  # fmt: skip


@pytest.fixture(params=KINDS)
def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shelf]:
    shelf = Shelf(request.param, tmp_path)
    yield shelf
    shelf.close()


@pytest.fixture
def store(shelf: Shelf) -> SessionStore:
    return shelf.store()


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


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_every_event_survives_the_way_to_the_disk_and_back(
    kind: Kind, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    shelf = Shelf(kind, tmp_path_factory.mktemp("round"))
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
    small = log.append(record(1, TextDelta("a")))
    assert log.append(record(2, TextDelta("a" * 101))) == small + 100


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
        assert (found.state.turns, found.state.mode, found.state.open_turn) == (21, "yolo", None)
        log.close()
        log = store.open("s")


def test_restoring_without_a_checkpoint_takes_everything(store: SessionStore) -> None:
    log = store.create("s", "/w")
    log.append(record(1, TurnStarted(UserMessage("hi"))))
    log.flush()
    log.append(record(2, ModeChanged("yolo")))
    found = log.restore()
    assert (found.seq, found.state.mode, found.state.open_turn) == (2, "yolo", 1)


def test_a_checkpoint_that_cannot_be_read_is_passed_over(store: SessionStore) -> None:
    log = store.create("s", "/w")
    log.append(checkpoint(1, 10))
    log.append(record(2, ModeChanged("yolo")))
    log.append(record(3, Checkpointed({"turns": "from the future"})))
    log.append(record(4))
    found = log.restore()
    assert (found.seq, found.state.turns, found.state.mode) == (4, 10, "yolo")


# Sessions and their ids


def test_an_id_that_is_taken_is_refused_and_what_is_there_stays(store: SessionStore) -> None:
    log = store.create("s", "/w")
    added = fill(log, [1])
    log.close()
    with pytest.raises(SessionExists, match=r"^Session ID 's' already exists$"):
        store.create("s", "/other")
    assert kept(store) == added


def test_a_session_that_is_not_there_is_not_found_and_the_attempt_leaves_nothing_behind(shelf: Shelf) -> None:
    store = shelf.store()
    before = shelf.files()
    with pytest.raises(SessionNotFound, match=r"^Session 's' not found$"):
        store.open("s")
    assert shelf.files() == before
    assert store.list() == []
    store.create("s", "/w").close()


def test_any_characters_make_an_id_and_no_two_ids_are_the_same(shelf: Shelf) -> None:
    store = shelf.store()
    for number, session in enumerate(NASTY_IDS, start=1):
        log = store.create(session, f"/{session}")
        log.append(record(1, TextDelta(str(number)), session))
        log.close()
    for number, session in enumerate(NASTY_IDS, start=1):
        log = store.open(session)
        assert list(log.read()) == [record(1, TextDelta(str(number)), session)]
        log.close()
        assert store.latest(f"/{session}") == session
    assert sorted(info.id for info in store.list()) == sorted(NASTY_IDS)
    assert {Path(name).parent for name in shelf.files()} <= {shelf.root, shelf.place, Path(f"{shelf.place}-locks")}


@settings(max_examples=60, deadline=None)
@given(ids=st.sets(st.text(st.sampled_from("aA./%~\0\ud800é"), min_size=1, max_size=5), min_size=2, max_size=5))
@pytest.mark.parametrize("kind", KINDS)
def test_ids_that_differ_are_different_sessions(
    kind: Kind, tmp_path_factory: pytest.TempPathFactory, ids: set[str]
) -> None:
    shelf = Shelf(kind, tmp_path_factory.mktemp("ids"))
    try:
        store = shelf.store()
        for session in ids:
            store.create(session, session).close()
        assert {info.id for info in store.list()} == ids
    finally:
        shelf.close()


def test_surrogates_that_make_a_pair_are_the_character_they_mean(store: SessionStore) -> None:
    store.create("\ud83d\ude00", "/w").close()
    store.open("\U0001f600").close()
    assert [info.id for info in store.list()] == ["\U0001f600"]


def test_an_empty_id_is_refused(store: SessionStore) -> None:
    with pytest.raises(ConfigError, match="must not be empty"):
        store.create("", "/w")
    with pytest.raises(ConfigError, match="must not be empty"):
        store.open("")


def test_sessions_are_listed_with_the_one_used_last_first(store: SessionStore) -> None:
    before = time.time()
    first = store.create("first", "/a")
    second = store.create("second", "/b\ud800")
    second.close()
    _write_until_newest(store, first)
    listed = store.list()
    assert [(info.id, info.workspace) for info in listed] == [("first", "/a"), ("second", "/b\ud800")]
    for info in listed:
        # Clocks of files are coarser than ours.
        assert before - 1 <= info.created <= info.updated + 1 <= time.time() + 2


def test_the_latest_session_is_that_of_the_workspace(store: SessionStore) -> None:
    with pytest.raises(SessionNotFound, match="No sessions found in `/a`"):
        store.latest("/a")
    first, second = store.create("first", "/a"), store.create("second", "/a")
    store.create("elsewhere", "/b")
    _write_until_newest(store, second)
    assert store.latest("/a") == "second"
    _write_until_newest(store, first)
    assert store.latest("/a") == "first"
    assert store.latest("/b") == "elsewhere"
    with pytest.raises(SessionNotFound):
        store.latest("/")


_seqs = count(1)


def _write_until_newest(store: SessionStore, log: Any) -> None:
    """Use a session until the clock of its store has noticed."""
    deadline = time.monotonic() + 5
    while store.list()[0].id != log.session or store.list()[0].updated == store.list()[1].updated:
        assert time.monotonic() < deadline
        fill(log, [next(_seqs)])
        log.flush()


# One writer


def test_a_session_that_is_open_is_held_until_it_is_closed(shelf: Shelf) -> None:
    log = shelf.store().create("s", "/w")
    with pytest.raises(SessionHeld, match=rf"^Session 's' is in use by process {os.getpid()}\."):
        shelf.store().open("s")
    with pytest.raises(SessionHeld, match=rf"^Session 's' is in use by process {os.getpid()}\."):
        shelf.store().create("s", "/w")
    fill(log, [1])
    log.close()
    log = shelf.store().open("s")
    assert numbers(log.read()) == [1]
    with pytest.raises(SessionHeld):
        shelf.store().open("s")


HOLDER = """
import sys
from pathlib import Path
from tests.store.shelves import Shelf
log = Shelf(sys.argv[1], Path(sys.argv[2])).store().open("s")
print("open", flush=True)
sys.stdin.read()
"""


@pytest.mark.process
def test_a_session_is_held_against_other_processes_and_let_go_of_by_their_death(shelf: Shelf) -> None:
    store = shelf.store()
    log = store.create("s", "/w")
    added = fill(log, [1])
    log.close()
    command = [sys.executable, "-c", HOLDER, shelf.kind, str(shelf.root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"open\n"
        with pytest.raises(SessionHeld, match=f"by process {child.pid}\\."):
            store.open("s")
        child.kill()
        child.wait(timeout=10)
    assert kept(store) == added


def test_a_failure_leaves_no_file_open(shelf: Shelf) -> None:
    store = shelf.store()
    store.create("s", "/w").close()
    log = store.create("held", "/w")
    before = _open_files()
    for _ in range(3):
        for attempt, fault in [("missing", SessionNotFound), ("held", SessionHeld)]:
            with pytest.raises(fault):
                store.open(attempt)
        with pytest.raises(SessionExists):
            store.create("s", "/w")
        store.open("s").close()
    assert _open_files() == before
    log.close()
    assert _open_files() < before


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


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


# A full disk


@contextmanager
def _files_limited_to(size: int) -> Iterator[None]:
    """The kernel writes what fits below the limit and refuses the rest, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_what_a_full_disk_refuses_is_kept_and_written_later(shelf: Shelf) -> None:
    log = shelf.store().create("s", "/w")
    added = fill(log, [1])
    log.flush()
    size = shelf.growing_file().stat().st_size
    added += fill(log, range(2, 200))
    for spare in (0, 1, 150, 200):
        with _files_limited_to(size + spare), pytest.raises(OSError, match=r"."):
            log.flush()
        assert list(log.read()) == added
        added += fill(log, [added[-1].seq + 1])
    log.flush()
    assert list(log.read()) == added
    log.close()
    assert kept(shelf.store()) == added


def test_a_session_is_let_go_of_even_if_its_last_records_cannot_be_written(shelf: Shelf) -> None:
    log = shelf.store().create("s", "/w")
    added = fill(log, [1])
    log.flush()
    fill(log, range(2, 200))
    with _files_limited_to(shelf.growing_file().stat().st_size + 150), pytest.raises(OSError, match=r"."):
        log.close()
    log.close()
    log = shelf.store().open("s")
    found = list(log.read())
    assert found[:1] == added
    assert not any(isinstance(item, Gap) for item in found)
    assert fill(log, [found[-1].seq + 1]) == list(log.read(found[-1].seq))  # type: ignore[union-attr]


def test_a_session_cannot_be_made_where_nothing_can_be_written(shelf: Shelf) -> None:
    store = shelf.store()
    store.create("other", "/w")
    before = shelf.files()
    with _files_limited_to(1), pytest.raises(ConfigError, match="Check the permissions and the free space"):
        store.create("s", "/w")
    assert shelf.files() == before
    store.create("s", "/w")


# Being private


def test_nobody_else_can_read_what_is_kept(shelf: Shelf) -> None:
    log = shelf.store().create("s", "/w")
    fill(log, [1])
    log.flush()
    for path in shelf.root.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path
