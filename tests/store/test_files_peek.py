"""Sessions as files, only looked at."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.shelves import TidyFileStore, fill, numbers
from trunkline.core.faults import ConfigError, SessionDamaged, SessionHeld, SessionNotFound
from trunkline.store.files import FileStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FileStore]:
    store = TidyFileStore(tmp_path)
    yield store
    store.close()


def test_a_session_can_be_looked_at_while_it_is_written(tmp_path: Path, store: FileStore) -> None:
    log = store.create("s", "/w")
    added = fill(log, range(1, 4))
    log.flush()
    fill(log, [4])
    others = FileStore(tmp_path)
    with pytest.raises(SessionHeld):
        others.open("s")
    found = others.peek("s")
    assert [found.info] == others.list()
    assert (found.info.id, found.info.workspace) == ("s", "/w")
    assert list(found.records) == added
    log.flush()
    assert numbers(others.peek("s").records) == [1, 2, 3, 4]
    # It has taken nothing from the one that writes.
    fill(log, [5])
    log.close()


def test_the_records_are_those_there_are_when_the_first_is_asked_for(store: FileStore) -> None:
    log = store.create("s", "/w")
    fill(log, [1])
    log.flush()
    records = store.peek("s").records
    fill(log, [2])
    log.flush()
    first = next(records)
    fill(log, [3])
    log.flush()
    assert numbers([first, *records]) == [1, 2]


def test_damage_is_a_gap_and_is_left_as_it_is(tmp_path: Path, store: FileStore) -> None:
    log = store.create("s", "/w")
    fill(log, range(1, 6))
    log.close()
    path = tmp_path / "s.log"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[3] = b"00000000" + lines[3][8:]
    damaged = b"".join(lines) + b"half a rec"
    path.write_bytes(damaged)
    assert numbers(store.peek("s").records) == [1, 2, (3, 3), 4, 5]
    assert path.read_bytes() == damaged
    assert os.listdir(tmp_path) == ["s.log"]


def test_looking_without_reading_holds_no_file_open(store: FileStore) -> None:
    store.create("s", "/w").close()
    before = os.listdir("/proc/self/fd")
    found = store.peek("s")
    assert os.listdir("/proc/self/fd") == before
    assert list(found.records) == []
    assert os.listdir("/proc/self/fd") == before


def test_what_is_not_there_is_not_found_and_nothing_is_made(tmp_path: Path) -> None:
    with pytest.raises(SessionNotFound, match=r"^Session 's' not found$"):
        FileStore(tmp_path / "none").peek("s")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("content", [b"", b"something else\n"])
def test_what_does_not_begin_like_a_log_is_damaged_and_its_file_is_named(
    tmp_path: Path, store: FileStore, content: bytes
) -> None:
    path = tmp_path / "s.log"
    path.write_bytes(content)
    with pytest.raises(SessionDamaged, match=f"^The log `{path}` cannot be read: it "):
        store.peek("s")


def test_the_session_of_another_id_is_not_shown_for_this_one(tmp_path: Path, store: FileStore) -> None:
    store.create("other", "/w").close()
    (tmp_path / "other.log").rename(tmp_path / "s.log")
    with pytest.raises(SessionDamaged, match="it holds session 'other'"):
        store.peek("s")


def test_what_is_no_file_is_a_configuration_error_and_nobody_waits_for_it(tmp_path: Path, store: FileStore) -> None:
    os.mkfifo(tmp_path / "s.log")
    (tmp_path / "t.log").mkdir()
    for session in ("s", "t"):
        with pytest.raises(ConfigError, match="cannot be opened"):
            store.peek(session)
