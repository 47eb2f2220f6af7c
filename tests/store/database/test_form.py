"""Tables are made once, whole or not at all, whoever comes first; and a newer database is left alone."""

from __future__ import annotations

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from trunkline.core.faults import ConfigError
from trunkline.network import schema
from trunkline.network.open_database import open_database
from trunkline.store.database import Database, Transaction, form

BROKEN: form.Step = ("CREATE TABLE extra (x TEXT)", "CREATE TABLE extra (x TEXT)")
ADDED: form.Step = ("CREATE TABLE extra (x TEXT)", "INSERT INTO extra VALUES ('once')")


async def tables(database: Database) -> set[str]:
    query = {
        "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table'",
        "postgresql": "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'",
    }[database.dialect]
    return {row["name"] for row in await database.read(lambda tx: tx.all(query))}


def wanted() -> set[str]:
    text = " ".join(sql for step in schema.STEPS for sql in form.statements(step, "postgresql"))
    words = text.split()

    def named(verb: str) -> set[str]:
        return {words[place + 2] for place in range(len(words)) if words[place : place + 2] == [verb, "TABLE"]}

    return named("CREATE") - named("DROP")


async def test_a_new_database_has_all_tables_and_opening_it_again_changes_nothing(database_url: str) -> None:
    for _ in range(2):
        database = await open_database(database_url)
        assert wanted() <= await tables(database)
        await database.close()


async def test_a_step_that_is_new_is_taken_once_and_rows_stay(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = await open_database(database_url)
    await database.write(lambda tx: tx.execute("INSERT INTO policy_setting VALUES ('a', 'b', 1)"))
    await database.close()
    monkeypatch.setattr("trunkline.network.open_database.FORM", schema.FORM.replace(steps=(*schema.STEPS, ADDED)))
    for _ in range(2):
        database = await open_database(database_url)
        assert await database.read(lambda tx: tx.all("SELECT x FROM extra")) == [{"x": "once"}]
        assert await database.read(lambda tx: tx.one("SELECT name FROM policy_setting")) == {"name": "a"}
        await database.close()


async def test_a_database_of_the_form_before_is_brought_to_this_one_with_all_that_is_in_it(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.network.open_database.FORM", schema.FORM.replace(steps=schema.STEPS[:7]))
    database = await open_database(database_url)

    def fill(tx: Transaction) -> None:
        tx.execute("INSERT INTO community (id, slug, name, created_at) VALUES ('c1', 'one', 'One', 1)")
        tx.execute("INSERT INTO thread (id, community_id, title, body, created_at) VALUES ('t1', 'c1', 'T', 'B', 1)")
        tx.execute(
            "INSERT INTO auth_challenge (id, scope, wallet, message, expires_at, created_at) "
            "VALUES ('a1', 'OWNER_LOGIN', '0x', 'm', 1, 1)"
        )

        tx.execute("INSERT INTO agent (id, handle, llm_model, created_at) VALUES ('a1', 'ada', 'model', 1)")
        tx.execute(
            "INSERT INTO comment (id, thread_id, community_id, agent_id, body, created_at) "
            "VALUES ('m1', 't1', 'c1', 'a1', 'C', 1)"
        )

    await database.write(fill)
    await database.close()
    monkeypatch.undo()
    for _ in range(2):
        database = await open_database(database_url)
        assert await database.read(lambda tx: tx.one("SELECT title FROM thread")) == {"title": "T"}
        assert await database.read(lambda tx: tx.all("SELECT * FROM webhook")) == []
        assert await database.read(lambda tx: tx.one("SELECT llm_model FROM thread")) == {"llm_model": None}
        assert await database.read(lambda tx: tx.one("SELECT llm_model FROM comment")) == {"llm_model": "model"}
        assert "auth_challenge" not in await tables(database)
        await database.close()


async def test_a_step_that_fails_leaves_the_database_as_it_was(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.network.open_database.FORM", schema.FORM.replace(steps=(*schema.STEPS, BROKEN)))
    with pytest.raises(ConfigError, match="extra"):
        await open_database(database_url)
    monkeypatch.undo()
    database = await open_database(database_url)
    assert "extra" not in await tables(database)
    await database.close()


async def test_a_database_of_a_newer_version_is_refused(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline.network.open_database.FORM", schema.FORM.replace(steps=(*schema.STEPS, ADDED)))
    await (await open_database(database_url)).close()
    monkeypatch.undo()
    with pytest.raises(ConfigError, match=r"made by a newer version.*Upgrade Trunkline"):
        await open_database(database_url)


async def test_several_that_start_at_once_make_the_tables_of_a_postgresql_database_together(postgres_url: str) -> None:
    databases = await asyncio.gather(*(open_database(postgres_url) for _ in range(4)))
    assert wanted() <= await tables(databases[0])
    steps = await databases[0].read(lambda tx: tx.all("SELECT steps FROM network_form"))
    assert steps == [{"steps": len(schema.STEPS)}]
    await asyncio.gather(*(database.close() for database in databases))


def test_a_sqlite_file_that_several_migrate_at_once_has_each_step_once(sqlite_url: str) -> None:
    path = sqlite_url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path)) as first:
        first.execute("PRAGMA journal_mode = WAL")

    def take(_: int) -> None:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=10)) as connection:
            form.sqlite(connection, path, schema.FORM)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(take, range(6)))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(schema.STEPS),)


@pytest.mark.parametrize("url", ["", "network.db", "sqlite://x.db", "sqlite:///", "sqlite:///:memory:", "mysql://h/db"])
async def test_a_url_that_means_nothing_says_what_to_write(url: str) -> None:
    with pytest.raises(ConfigError, match="sqlite:///") as caught:
        await open_database(url)
    assert caught.value.hint
