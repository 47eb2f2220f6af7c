"""Several statements of SQLite, all of them or none."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def write_transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """What is done within is kept whole, or not at all. The connection must be in autocommit mode."""
    # At once: a transaction that begins by reading could not become one that writes once somebody else has written.
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # After some errors, such as a full disk, SQLite has done that already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
