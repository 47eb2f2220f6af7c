"""The network's PostgreSQL database when connections break and the server comes and goes."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.postgres import Postgres
from trunkline.core.faults import ConfigError
from trunkline.network.open_database import open_database
from trunkline.store.database import Database, DatabaseGone, Transaction
from trunkline.store.database import postgres as postgres_database

SET = "INSERT INTO policy_setting (name, value, updated_at) VALUES (?, '', 0)"
OTHERS = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
    "WHERE pid <> pg_backend_pid() AND application_name = 'trunkline'"
)


async def write(database: Database, name: str) -> None:
    await database.write(lambda tx: tx.execute(SET, (name,)))


async def names(database: Database) -> list[str]:
    rows = await database.read(lambda tx: tx.all("SELECT name FROM policy_setting ORDER BY name"))
    return [row["name"] for row in rows]


async def test_connections_that_broke_while_nobody_used_them_are_not_noticed(
    postgres_server: Postgres, postgres_url: str
) -> None:
    database = await open_database(postgres_url)
    for name in "abc":
        await asyncio.gather(*(write(database, f"{name}{number}") for number in range(8)))
        await names(database)
        await asyncio.to_thread(postgres_server.run, OTHERS)
    assert len(await names(database)) == 24
    await database.close()


async def test_work_whose_connection_breaks_is_told_so_and_leaves_nothing(postgres_url: str) -> None:
    database = await open_database(postgres_url)

    def cut(tx: Transaction) -> None:
        tx.execute(SET, ("lost",))
        tx.one("SELECT pg_terminate_backend(pg_backend_pid())")

    with pytest.raises(DatabaseGone, match="terminating connection"):
        await database.write(cut)
    await write(database, "kept")
    assert await names(database) == ["kept"]
    await database.close()


async def test_a_commit_that_is_not_confirmed_is_told_as_unknown(postgres_server: Postgres, postgres_url: str) -> None:
    database = await open_database(postgres_url)

    def cut(tx: Transaction) -> None:
        tx.execute(SET, ("unknown",))
        postgres_server.run(OTHERS)

    with pytest.raises(DatabaseGone, match="not known whether this was written"):
        await database.write(cut)
    await write(database, "kept")
    assert "kept" in await names(database)
    await database.close()


async def test_a_server_that_went_away_is_gone_and_is_found_again(postgres_server: Postgres, postgres_url: str) -> None:
    database = await open_database(postgres_url)
    await write(database, "before")
    await asyncio.to_thread(postgres_server.stop)
    try:
        for act in (write(database, "lost"), names(database)):
            with pytest.raises(DatabaseGone):
                await act
    finally:
        await asyncio.to_thread(postgres_server.start)
    await write(database, "after")
    assert await names(database) == ["after", "before"]
    await database.close()


async def test_a_statement_without_end_is_stopped_and_the_next_one_is_not(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Enough, on a busy machine, for the statement behind it.
    limited = postgres_database._SETTINGS.replace("statement_timeout = 20000", "statement_timeout = 2000")
    assert limited != postgres_database._SETTINGS
    database = await open_database(postgres_url)
    monkeypatch.setattr(postgres_database, "_SETTINGS", limited)
    with pytest.raises(DatabaseGone, match="timeout"):
        await database.read(lambda tx: tx.one("SELECT pg_sleep(20)"))
    assert await names(database) == []
    await database.close()


async def test_a_nul_is_a_value_error(postgres_url: str) -> None:
    database = await open_database(postgres_url)
    with pytest.raises(ValueError, match="NUL"):
        await write(database, "a\0b")
    await database.close()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hunter%ZZsecret@127.0.0.1/db",
        "postgresql://me:huntersecret@127.0.0.1:1/db",
        "postgresql://me:huntersecret@127.0.0.1:nine/db",
        "postgres://me:huntersecret@/db?host=/nowhere&nonsense=1",
    ],
)
async def test_a_server_that_cannot_be_reached_is_an_error_without_the_password(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        await open_database(url)
    assert "PostgreSQL database" in str(caught.value)
    assert "hunter" not in str(caught.value)
    assert "secret" not in str(caught.value)
