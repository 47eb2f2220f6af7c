"""Opening a database of our own that is to survive power loss: a private file, made if need be, brought up to date."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Sequence

from trunkline.base import paths
from trunkline.core.faults import ConfigError
from trunkline.store import durable, locks
from trunkline.store.explaining import explained
from trunkline.store.migrations import Migration, NewerDatabase, migrate

#: How often is looked whether the others who open it are done: they take a few milliseconds.
LOOK_SECONDS = 0.01


def open_private(
    path: str, what: str, migrations: Sequence[Migration], *, busy_seconds: float, any_thread: bool = False
) -> sqlite3.Connection:
    """Open it, in autocommit mode, with a write-ahead log and every commit on the disk. Waits for the disk.

    Args:
        what: what it is to people, such as `chat database`.
        any_thread: whether several threads use the connection, one at a time.

    Raises:
        ConfigError: it cannot be opened or read, or a newer version made it.
    """
    with explained(what, path):
        paths.ensure_dir(os.path.dirname(path))
        _touch(path)
        connection = sqlite3.connect(path, timeout=busy_seconds, isolation_level=None, check_same_thread=not any_thread)
        try:
            if _log_ahead(connection, busy_seconds) != "wal":
                raise ConfigError(
                    f"The {what} `{path}` cannot have a write-ahead log.", hint="Put it on a local file system."
                )
            connection.execute("PRAGMA synchronous = FULL")
            migrate(connection, migrations)
        except NewerDatabase as error:
            connection.close()
            raise ConfigError(
                f"The {what} `{path}` was made by a newer version: {error}.",
                hint="Upgrade Trunkline, or choose another state directory (`TRUNKLINE_HOME`).",
            ) from None
        except BaseException:
            connection.close()
            raise
    return connection


def _log_ahead(connection: sqlite3.Connection, busy_seconds: float) -> str:
    """Ask for the write-ahead log; returns the mode that the database has then.

    SQLite does not wait, whatever its timeout, when two want to be the first to change it: each would wait for the
    other. It says at once that the database is locked, and it is for us to ask again.
    """
    deadline = time.monotonic() + busy_seconds
    while True:
        try:
            return str(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
        time.sleep(LOOK_SECONDS)


def _touch(path: str) -> None:
    """Make the file private from the beginning; SQLite gives its other files the same permissions."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, locks.PRIVATE_FILE))
    except FileExistsError:
        return
    durable.sync_directory(os.path.dirname(path))
