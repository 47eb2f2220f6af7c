"""Many sessions in one database."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.shelves import checkpoint, fill, kept, numbers, record
from trunkline.base import jsontext
from trunkline.core.events import TextDelta
from trunkline.core.faults import ConfigError, SessionDamaged, SessionNotFound
from trunkline.store import locks, sqlitelog
from trunkline.store.sqlite import MIGRATIONS, SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "sessions.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(path)
    yield store
    store.close()


def _execute(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute(statement)
    finally:
        connection.close()


def test_sessions_of_one_database_do_not_see_each_other(store: SqliteStore) -> None:
    first, second = store.create("first", "/w"), store.create("second", "/w")
    added = fill(first, [1, 2])
    others = fill(second, [1, 2, 3])
    first.flush()
    assert list(first.read()) == added
    assert list(second.read()) == others
    assert second.restore().seq == 3


def test_a_database_is_in_write_ahead_mode_and_has_taken_every_step(path: Path, store: SqliteStore) -> None:
    connection = sqlite3.connect(path)
    try:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
    finally:
        connection.close()


def test_records_can_be_asked_for_in_sql(path: Path, store: SqliteStore) -> None:
    log = store.create("s", "/w")
    log.append(record(1, TextDelta("hello")))
    log.close()
    connection = sqlite3.connect(path)
    try:
        query = "SELECT seq, event, json_extract(data, '$.text') FROM records"
        assert connection.execute(query).fetchall() == [(1, "TextDelta", "hello")]
    finally:
        connection.close()


def test_closing_the_store_closes_its_logs_and_is_idempotent(path: Path) -> None:
    store = SqliteStore(path)
    log = store.create("s", "/w")
    fill(log, [1])
    store.close()
    store.close()
    with pytest.raises(ValueError, match="is closed"):
        log.append(record(2))
    with pytest.raises(sqlite3.ProgrammingError):
        store.list()
    again = SqliteStore(path)
    assert numbers(kept(again)) == [1]
    again.close()


def test_locks_leave_no_files_behind(path: Path, store: SqliteStore) -> None:
    directory = path.with_name("sessions.db-locks")
    logs = [store.create(name, "/w") for name in "abc"]
    assert sorted(found.name for found in directory.iterdir()) == ["a.lock", "b.lock", "c.lock", "~"]
    for log in logs:
        log.close()
    assert [found.name for found in directory.iterdir()] == ["~"]


def test_a_lock_file_that_somebody_removed_does_not_disturb_closing(path: Path, store: SqliteStore) -> None:
    log = store.create("s", "/w")
    path.with_name("sessions.db-locks").joinpath("s.lock").unlink()
    log.close()
    store.open("s").close()


def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"not a database, and long enough to be looked at" * 100)
    with pytest.raises(SessionDamaged, match=r"cannot be read: file is not a database\. Move it away"):
        SqliteStore(path)
    assert path.read_bytes().startswith(b"not a database")


def test_a_database_of_a_newer_version_is_refused(path: Path) -> None:
    SqliteStore(path).close()
    _execute(path, "PRAGMA user_version = 99")
    with pytest.raises(SessionDamaged, match=r"newer version: it has form 99, and this version knows \d\. Upgrade"):
        SqliteStore(path)


def test_a_place_that_cannot_be_used_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be opened"):
        SqliteStore(tmp_path / "file" / "sessions.db")
    (tmp_path / "directory.db").mkdir()
    with pytest.raises(ConfigError, match="cannot be used: unable to open database file"):
        SqliteStore(tmp_path / "directory.db")


def test_a_database_that_cannot_have_a_write_ahead_log_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda _, **options: real(":memory:", **options))
    with pytest.raises(ConfigError, match="local file system"):
        SqliteStore(path)


def test_a_writer_that_keeps_the_database_too_long_is_an_error_and_nothing_is_lost(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.store.sqlite.BUSY_SECONDS", 0.01)
    store = SqliteStore(path)
    log = store.create("s", "/w")
    added = fill(log, [1, 2])
    other = sqlite3.connect(path, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(OSError, match=r"\[Errno 16\] .*database is locked"):
            log.flush()
        with pytest.raises(ConfigError, match="database is locked"):
            store.create("t", "/w")
        assert list(log.read()) == added
        other.execute("ROLLBACK")
        log.flush()
        assert list(log.read()) == added
    finally:
        other.close()
        store.close()


def test_a_session_that_cannot_be_discarded_is_let_go_of(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline.store.sqlite.BUSY_SECONDS", 0.01)
    store = SqliteStore(path)
    log = store.create("s", "/w")
    other = sqlite3.connect(path, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(OSError, match="database is locked"):
            log.discard()
        other.execute("ROLLBACK")
        assert kept(store) == []
    finally:
        other.close()
        store.close()


def test_damage_that_sqlite_finds_while_reading_is_a_damaged_session(path: Path, store: SqliteStore) -> None:
    log = store.create("s", "/w")
    fill(log, range(1, 2000))
    log.flush()
    _execute(path, "DROP TABLE records")
    with pytest.raises(SessionDamaged, match="session 's' cannot be read: no such table"):
        list(log.read())
    with pytest.raises(SessionDamaged):
        log.restore()


def test_a_record_that_this_version_cannot_read_is_a_gap(path: Path, store: SqliteStore) -> None:
    log = store.create("s", "/w")
    fill(log, range(1, 5))
    log.flush()
    _execute(path, 'UPDATE records SET data = \'{"no":"text"}\' WHERE seq = 2')
    _execute(path, "UPDATE records SET data = 'no json' WHERE seq = 4")
    assert numbers(log.read()) == [1, (2, 2), 3, (4, 4)]
    assert log.restore().seq == 4


def test_an_event_of_a_newer_version_is_read_as_an_extension(path: Path, store: SqliteStore) -> None:
    log = store.create("s", "/w")
    fill(log, [1])
    log.flush()
    _execute(path, "UPDATE records SET event = 'Telepathy'")
    (found,) = log.read()
    assert "unknown.Telepathy" in repr(found)


def test_reading_holds_no_transaction_open_and_little_in_memory(
    path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlitelog, "PAGE_BYTES", 50)
    log = store.create("s", "/w")
    added = fill(log, range(1, 50))
    log.flush()
    queries: list[str] = []
    store._connection.set_trace_callback(queries.append)
    reader = log.read()
    found = [next(reader)]
    other = sqlite3.connect(path, isolation_level=None)
    try:
        # A reader in a transaction would keep the write-ahead log from being emptied.
        assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    finally:
        other.close()
    found += reader
    assert found == added
    assert len(queries) > 10


def test_restoring_reads_no_record_before_the_checkpoint(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    log = store.create("s", "/w")
    fill(log, range(1, 2000))
    log.append(checkpoint(2000, 7))
    fill(log, range(2001, 2011))
    log.flush()
    decoded = 0
    real = jsontext.loads

    def loads(data: bytes, max_depth: int) -> object:
        nonlocal decoded
        decoded += 1
        return real(data, max_depth)

    monkeypatch.setattr(jsontext, "loads", loads)
    assert log.restore().state.turns == 7
    assert decoded == 11


def test_a_transaction_that_fails_in_the_middle_is_taken_back_and_repeated_whole(
    path: Path, store: SqliteStore
) -> None:
    log = store.create("s", "/w")
    added = fill(log, range(1, 6))
    _execute(path, "CREATE TRIGGER no BEFORE INSERT ON records WHEN new.seq = 4 BEGIN SELECT RAISE(FAIL, 'no'); END")
    with pytest.raises(OSError, match=r"cannot be written: no$"):
        log.flush()
    # Another writer gets its turn, and finds nothing of it.
    _execute(path, "DROP TRIGGER no")
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM records").fetchone() == (0,)
    connection.close()
    log.close()
    assert kept(store) == added


def test_a_database_is_prepared_by_one_process_at_a_time(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite refuses at once, whatever its timeout, to switch to a write-ahead log while another process writes."""
    waited: list[str] = []

    def wait(fd: int) -> None:
        waited.append(os.readlink(f"/proc/self/fd/{fd}"))
        assert not path.exists()

    monkeypatch.setattr(locks, "wait", wait)
    SqliteStore(path).close()
    assert waited == [f"{path}-locks/~"]


STARTER = """
import sys
from trunkline.store.sqlite import SqliteStore
sys.stdin.readline()
store = SqliteStore(sys.argv[1])
log = store.create(sys.argv[2], "/w")
from tests.store.shelves import fill
for seq in range(1, 51):
    fill(log, [seq])
    log.flush()
store.close()
"""


@pytest.mark.process
def test_processes_that_start_at_once_share_a_new_database(path: Path) -> None:
    children = [
        subprocess.Popen(
            [sys.executable, "-c", STARTER, str(path), name], stdin=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for name in "abcd"
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.write(b"go\n")
        child.stdin.flush()
    for child in children:
        _, errors = child.communicate(timeout=25)
        assert (child.returncode, errors) == (0, b"")
    store = SqliteStore(path)
    for name in "abcd":
        assert numbers(kept(store, name)) == list(range(1, 51))
    with pytest.raises(SessionNotFound):
        store.open("e")
    store.close()
