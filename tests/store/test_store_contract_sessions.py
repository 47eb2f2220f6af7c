"""What every store promises of sessions: their ids, their order, and that each has one writer."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.store.shelves import Shelf, fill, kept, numbers, record
from tests.support.patience import PATIENCE_SECONDS
from trunkline.core.events import TextDelta
from trunkline.core.faults import ConfigError, SessionExists, SessionHeld, SessionNotFound
from trunkline.core.log import SessionStore

NASTY_IDS = [
    "plain-id_7.x", "Case", "case", "/", "..", ".", "../../etc/passwd", "a/b", ".hidden", "nul\0byte", "line\nfeed",
    "é", "e\u0301", "\U0001f600", "\ud800", "\udc80\udc80", "%2f", "~", "con", " ", "a.log", "a.log.damaged-1", "-rf",
    "*", "x" * 10_000, "X" * 10_000, "x" * 9_999 + "/", "\ud800" * 10_000,
]  # fmt: skip


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
    assert {Path(name).parent for name in shelf.files()} <= {shelf.root, shelf.place}


@settings(max_examples=60, deadline=None)
@given(ids=st.sets(st.text(st.sampled_from("aA./%~\0\ud800é"), min_size=1, max_size=5), min_size=2, max_size=5))
def test_ids_that_differ_are_different_sessions(tmp_path_factory: pytest.TempPathFactory, ids: set[str]) -> None:
    shelf = Shelf(tmp_path_factory.mktemp("ids"))
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
    deadline = time.monotonic() + PATIENCE_SECONDS
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
log = Shelf(Path(sys.argv[1])).store().open("s")
print("open", flush=True)
sys.stdin.read()
"""


@pytest.mark.process
def test_a_session_is_held_against_other_processes_and_let_go_of_by_their_death(shelf: Shelf) -> None:
    store = shelf.store()
    log = store.create("s", "/w")
    added = fill(log, [1])
    log.close()
    command = [sys.executable, "-c", HOLDER, str(shelf.root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"open\n"
        with pytest.raises(SessionHeld, match=f"by process {child.pid}\\."):
            store.open("s")
        child.kill()
        child.wait(timeout=PATIENCE_SECONDS)
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
