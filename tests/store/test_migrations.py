"""Bringing a database to the form that the program expects."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from trunkline.store.migrations import NewerDatabase, migrate

STEPS = (("CREATE TABLE a (x)", "INSERT INTO a VALUES (1)"), ("ALTER TABLE a ADD COLUMN y", "CREATE TABLE b (z)"))


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    yield connection
    connection.close()


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def test_a_new_database_takes_every_step_in_order(connection: sqlite3.Connection) -> None:
    migrate(connection, STEPS)
    assert _version(connection) == 2
    assert connection.execute("SELECT x, y FROM a").fetchall() == [(1, None)]


def test_a_database_takes_only_the_steps_that_are_missing(connection: sqlite3.Connection) -> None:
    migrate(connection, STEPS[:1])
    connection.execute("INSERT INTO a VALUES (2)")
    for _ in range(2):
        migrate(connection, STEPS)
    assert _version(connection) == 2
    assert connection.execute("SELECT x FROM a").fetchall() == [(1,), (2,)]


def test_a_step_that_fails_leaves_the_database_as_it_was_before_that_step(connection: sqlite3.Connection) -> None:
    broken = (STEPS[0], ("CREATE TABLE b (z)", "no SQL"))
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, broken)
    assert _version(connection) == 1
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("a",)]
    migrate(connection, STEPS)
    assert _version(connection) == 2


def test_a_database_that_knows_more_steps_is_refused(connection: sqlite3.Connection) -> None:
    migrate(connection, STEPS)
    with pytest.raises(NewerDatabase, match="it has form 2, and this version knows 1"):
        migrate(connection, STEPS[:1])
