"""Bringing the network's database to the form that this version expects: the steps of `schema`, each whole and once.

Also when several processes start at the same time. A database of a newer version is refused.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from trunkline.core.faults import ConfigError
from trunkline.network.schema import STEPS, statements
from trunkline.store.migrations import NewerDatabase, migrate

if TYPE_CHECKING:
    import psycopg

#: Stands in the file's header and says whose it is: other databases of this program count their steps likewise.
APPLICATION_ID = int.from_bytes(b"TLNW", "big")

#: Who holds this lock of a PostgreSQL database changes its tables. The same four letters; any number would do.
ADVISORY_LOCK = APPLICATION_ID

#: How long to wait for another process that changes the tables.
WAIT_SECONDS = 60

_UPGRADE = "Upgrade Trunkline, or choose another database."
_OWN = "Give the network a database of its own."


def sqlite(connection: sqlite3.Connection, path: str) -> None:
    """Take the steps that are missing. The connection must be in autocommit mode.

    Raises:
        ConfigError: it is of a newer version, or is not a network's database.
        sqlite3.Error: a step failed. The database is as it was before that step.
    """
    _claim(connection, path)
    try:
        migrate(connection, [statements(step, "sqlite") for step in STEPS])
    except NewerDatabase as error:
        raise ConfigError(
            f"The network's database `{path}` was made by a newer version: {error}.", hint=_UPGRADE
        ) from None


def _claim(connection: sqlite3.Connection, path: str) -> None:
    """Mark a new file as ours, and refuse one that is somebody else's."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        mark = connection.execute("PRAGMA application_id").fetchone()[0]
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if mark != APPLICATION_ID and (mark or tables):
            raise ConfigError(f"`{path}` is a database of something else.", hint=_OWN)
        if mark != APPLICATION_ID:
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def postgres(connection: psycopg.Connection[dict[str, Any]]) -> None:
    """Take the steps that are missing. The connection must be in autocommit mode, and give rows as dictionaries.

    Close it afterwards: it holds a lock, and waits longer than others. The table `network_form` counts the steps.

    Raises:
        ConfigError: it is of a newer version.
        psycopg.Error: a step failed. The database is as it was before that step.
    """
    if _taken(connection) == len(STEPS):
        return
    # A step may take long on a large database; and so may the wait for another process that takes it.
    connection.execute(f"SET statement_timeout = 0; SET lock_timeout = {WAIT_SECONDS * 1000}")
    # Of the session: within a transaction, PostgreSQL may remember that there was no table before it waited.
    connection.execute("SELECT pg_advisory_lock(%s)", (ADVISORY_LOCK,))
    for number in range(_taken(connection) + 1, len(STEPS) + 1):
        with connection.transaction():
            if number == 1:
                connection.execute("CREATE TABLE network_form (steps INTEGER NOT NULL)")
                connection.execute("INSERT INTO network_form VALUES (0)")
            for statement in statements(STEPS[number - 1], "postgresql"):
                connection.execute(statement)
            connection.execute("UPDATE network_form SET steps = %s", (number,))


def _taken(connection: psycopg.Connection[dict[str, Any]]) -> int:
    if connection.execute("SELECT 1 WHERE to_regclass('network_form') IS NOT NULL").fetchone() is None:
        return 0
    row = connection.execute("SELECT steps FROM network_form").fetchone()
    taken = int(row["steps"]) if row else 0
    if taken > len(STEPS):
        raise ConfigError(
            f"The network's database was made by a newer version: it has form {taken}, and this version knows "
            f"{len(STEPS)}.",
            hint=_UPGRADE,
        )
    return taken
