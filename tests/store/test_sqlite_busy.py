"""A database that another process is writing to for long."""

from __future__ import annotations

import asyncio
import errno
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.shelves import fill, kept
from trunkline.core.faults import ConfigError
from trunkline.store import sqlite, sqlitelog
from trunkline.store.sqlite import SqliteStore

#: Far from what a flush may take, and from what it took if it waited as long as opening does.
SOON = sqlite.BUSY_SECONDS / 5
#: Longer than a flush waits.
A_WHILE = 4 * sqlitelog.FLUSH_BUSY_SECONDS


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(path)
    yield store
    store.close()


@pytest.fixture
def other(path: Path, store: SqliteStore) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    yield connection
    connection.close()


@pytest.mark.parametrize("made", [True, False])
def test_a_flush_gives_up_soon_and_the_next_one_writes_it(
    store: SqliteStore, other: sqlite3.Connection, made: bool
) -> None:
    log = store.create("s", "/w")
    if not made:
        log.close()
        log = store.open("s")
    added = fill(log, [1, 2])
    other.execute("BEGIN IMMEDIATE")
    begun = time.monotonic()
    with pytest.raises(OSError, match="database is locked") as raised:
        log.flush()
    assert time.monotonic() - begun < SOON
    assert raised.value.errno == errno.EBUSY
    added += fill(log, [3])
    assert list(log.read()) == added
    other.execute("ROLLBACK")
    log.flush()
    log.close()
    assert kept(store) == added


def test_a_flush_still_gives_up_soon_after_a_session_could_not_be_made(
    store: SqliteStore, other: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = store.create("s", "/w")
    fill(log, [1])
    other.execute("BEGIN IMMEDIATE")
    with monkeypatch.context() as patch:
        patch.setattr(sqlite, "BUSY_SECONDS", A_WHILE)
        begun = time.monotonic()
        with pytest.raises(ConfigError, match="database is locked"):
            store.create("t", "/w")
        assert time.monotonic() - begun >= A_WHILE
    begun = time.monotonic()
    with pytest.raises(OSError, match="database is locked"):
        log.flush()
    assert time.monotonic() - begun < SOON
    other.execute("ROLLBACK")


def test_making_a_session_waits_for_its_turn(store: SqliteStore, other: sqlite3.Connection) -> None:
    other.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(A_WHILE, other.execute, ["ROLLBACK"])
    timer.start()
    try:
        store.create("s", "/w").close()
    finally:
        timer.join()


async def test_a_sync_waits_for_its_turn_while_the_event_loop_goes_on(
    store: SqliteStore, other: sqlite3.Connection
) -> None:
    log = store.create("s", "/w")
    added = fill(log, [1, 2])
    other.execute("BEGIN IMMEDIATE")
    sync = asyncio.create_task(log.sync())
    # The loop itself ends what the sync waits for.
    asyncio.get_running_loop().call_later(A_WHILE, other.execute, "ROLLBACK")
    await asyncio.wait_for(sync, 2 * sqlitelog.SYNC_BUSY_SECONDS)
    log.close()
    assert kept(store) == added


async def test_a_sync_does_not_wait_for_ever(
    store: SqliteStore, other: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlitelog, "SYNC_BUSY_SECONDS", A_WHILE)
    log = store.create("s", "/w")
    added = fill(log, [1])
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(OSError, match="database is locked"):
        await log.sync()
    other.execute("ROLLBACK")
    log.close()
    assert kept(store) == added


async def test_a_sync_that_still_waits_writes_nothing_to_a_session_that_was_let_go(
    store: SqliteStore, other: sqlite3.Connection
) -> None:
    log = store.create("s", "/w")
    fill(log, [1])
    other.execute("BEGIN IMMEDIATE")
    sync = asyncio.create_task(log.sync())
    await asyncio.sleep(0)
    with pytest.raises(OSError, match="database is locked"):
        log.close()
    other.execute("ROLLBACK")
    with pytest.raises(ValueError, match="is closed"):
        await sync
    assert kept(store) == []
