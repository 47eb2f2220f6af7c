"""Bringing an SQLite database to the form that the program expects, one step after the other.

The steps are a list that only ever grows; `PRAGMA user_version` counts those that were taken. Each step is taken
whole or not at all, and once, also when several processes start at the same time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from trunkline.store.transactions import write_transaction

#: The statements that take a database from one form to the next.
Migration = Sequence[str]


class NewerDatabase(Exception):
    """A newer version of the program has been here."""


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration]) -> None:
    """Take the steps that are missing. The connection must be in autocommit mode (`isolation_level=None`).

    Raises:
        NewerDatabase: it has taken steps that are not in the list.
        sqlite3.Error: a step failed. The database is as it was before that step.
    """
    if taken(connection, migrations) == len(migrations):
        return
    for step, statements in enumerate(migrations, start=1):
        with write_transaction(connection):
            # Asked again under the lock: another process may have taken the step in the meantime.
            if taken(connection, migrations) < step:
                for statement in statements:
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {step}")


def taken(connection: sqlite3.Connection, migrations: Sequence[object]) -> int:
    """How many of the steps a database has taken.

    Raises:
        NewerDatabase: more than there are in the list.
    """
    count = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if count > len(migrations):
        raise NewerDatabase(f"it has form {count}, and this version knows {len(migrations)}")
    return count
