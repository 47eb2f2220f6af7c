"""The network's SQLite file when its disk, its neighbours or its owner are difficult."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from tests.support.full_disk import files_limited_to
from trunkline.core.faults import ConfigError
from trunkline.network.open_database import open_database
from trunkline.store.database import Database, DatabaseGone, Transaction, sqlite_connection

SET = "INSERT INTO policy_setting (name, value, updated_at) VALUES (?, ?, 0)"


@pytest.fixture
def path(sqlite_url: str) -> Path:
    return Path(sqlite_url.removeprefix("sqlite:///"))


async def write(database: Database, name: str, value: str = "") -> None:
    await database.write(lambda tx: tx.execute(SET, (name, value)))


async def names(database: Database) -> list[str]:
    rows = await database.read(lambda tx: tx.all("SELECT name FROM policy_setting ORDER BY name"))
    return [row["name"] for row in rows]


move, remove = os.rename, os.remove
leave, content = Path.write_bytes, Path.read_bytes


def size_of_log(path: Path) -> int:
    return Path(f"{path}-wal").stat().st_size


@asynccontextmanager
async def held(database: Database) -> AsyncIterator[None]:
    """While it lasts, writes gather behind one that does not end."""
    begun, free = threading.Event(), threading.Event()

    def hold(tx: Transaction) -> bool:
        begun.set()
        return free.wait(10)

    holding = asyncio.ensure_future(database.write(hold))
    assert await asyncio.to_thread(begun.wait, 10)
    yield
    free.set()
    assert await holding


async def test_a_full_disk_fails_everybody_in_the_commit_and_the_database_recovers_with_the_disk(
    sqlite_database: Database, path: Path
) -> None:
    await write(sqlite_database, "before")
    size = size_of_log(path)
    with files_limited_to(size + 20_000):
        async with held(sqlite_database):
            large = asyncio.ensure_future(write(sqlite_database, "large", "x" * 500_000))
            small = [asyncio.ensure_future(write(sqlite_database, f"small {number}")) for number in range(5)]
            await asyncio.sleep(0)
        answers = await asyncio.gather(large, *small, return_exceptions=True)
        assert {type(answer) for answer in answers} == {DatabaseGone}
        assert await names(sqlite_database) == ["before"]
    await write(sqlite_database, "large", "x" * 500_000)
    assert await names(sqlite_database) == ["before", "large"]


async def test_a_file_that_another_program_has_locked_is_gone_until_it_lets_go(
    sqlite_url: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_connection, "BUSY_SECONDS", 0.05)
    database = await open_database(sqlite_url)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseGone, match="locked"):
            await write(database, "a")
        assert await names(database) == []
        other.execute("ROLLBACK")
        await write(database, "a")
        assert other.execute("SELECT name FROM policy_setting").fetchall() == [("a",)]
    await database.close()


async def test_a_file_that_was_moved_away_is_not_written_to_any_more(sqlite_database: Database, path: Path) -> None:
    await write(sqlite_database, "a")
    move(path, f"{path}.away")
    for act in (write(sqlite_database, "b"), names(sqlite_database)):
        with pytest.raises(DatabaseGone, match="put it back"):
            await act
    leave(path, b"")
    with pytest.raises(DatabaseGone, match="put it back"):
        await write(sqlite_database, "c")
    move(f"{path}.away", path)
    await write(sqlite_database, "d")
    assert await names(sqlite_database) == ["a", "d"]


async def test_a_search_without_end_is_stopped_and_the_next_one_is_not(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_connection, "WORK_SECONDS", 0.05)
    endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"

    def work(tx: Transaction) -> object:
        return tx.one(endless)

    for act in (sqlite_database.read, sqlite_database.write):
        with pytest.raises(DatabaseGone, match="interrupted"):
            await act(work)
    await write(sqlite_database, "a")
    assert await names(sqlite_database) == ["a"]


async def test_writes_that_wait_share_a_commit(sqlite_database: Database, path: Path) -> None:
    await write(sqlite_database, "warm")
    before = size_of_log(path)
    async with held(sqlite_database):
        waiting = [asyncio.ensure_future(write(sqlite_database, f"{number:03}")) for number in range(100)]
        await asyncio.sleep(0)
    await asyncio.gather(*waiting)
    # Each commit writes at least one page; a hundred of them for themselves would be 100 pages.
    assert size_of_log(path) - before < 20 * 4096


async def test_a_second_server_on_the_same_file_is_refused_until_the_first_has_left(sqlite_url: str) -> None:
    database = await open_database(sqlite_url)
    with pytest.raises(ConfigError, match=rf"in use( by process {os.getpid()})?\. Stop that one"):
        await open_database(sqlite_url)
    await database.close()
    await (await open_database(sqlite_url)).close()


async def test_the_files_are_their_owners_alone_and_the_folders_are_made(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "a ?#%20.db"
    database = await open_database(f"sqlite:///{path}")
    await write(database, "a")
    files = list(path.parent.iterdir())
    assert {file.name.removeprefix(path.name) for file in files} == {"", "-wal", "-shm", "-lock"}
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    await database.close()
    assert {file.name.removeprefix(path.name) for file in path.parent.iterdir()} == {"", "-lock"}


async def test_commits_wait_for_the_disk_and_keys_are_checked(sqlite_database: Database) -> None:
    for pragma, value in (("synchronous", 2), ("foreign_keys", 1), ("journal_mode", "wal")):
        row = await sqlite_database.write(lambda tx, pragma=pragma: tx.one(f"PRAGMA {pragma}"))  # type: ignore[misc]
        assert row == {pragma: value}


async def test_a_file_that_is_no_database_or_somebody_elses_is_refused_and_left_alone(
    sqlite_url: str, path: Path
) -> None:
    leave(path, b"not a database" * 100)
    with pytest.raises(ConfigError, match="cannot be read"):
        await open_database(sqlite_url)
    assert content(path) == b"not a database" * 100
    remove(path)
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE theirs (x)")
    with pytest.raises(ConfigError, match="is a database of something else"):
        await open_database(sqlite_url)
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]
