"""A connection to a SQLite database of ours: how it is opened, and what its errors mean."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from typing import Any, NoReturn

from trunkline.store.database import Conflict, DatabaseGone, Dialect, Row

#: How long to wait for another program that has the file locked, such as a backup. Our own writer is alone.
BUSY_SECONDS = 5.0
#: How long one piece of work may compute. What takes longer is a hostile search, or a fault.
WORK_SECONDS = 20.0
#: The time is looked at every so many steps of SQLite's machine: a few milliseconds of work.
_STEPS_PER_LOOK = 100_000
#: Statements that are kept compiled for each connection; there are some two hundred.
_STATEMENTS = 256
#: Pages in memory for each connection, in KiB.
_CACHE_KIB = 8192
#: The write-ahead log is cut back to this when it has been larger.
_LOG_BYTES = 64 * 1024 * 1024

#: What is wrong with the disk, the file or another program rather than with a statement. By primary result code.
_TROUBLE = frozenset(
    {
        sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_PERM, sqlite3.SQLITE_NOTADB,
    }
)  # fmt: skip


def connect(path: str, *, writes: bool) -> sqlite3.Connection:
    """Open the file, which must exist. The connection belongs to this thread, and is in autocommit mode.

    Raises:
        sqlite3.Error: it cannot be opened.
    """
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, cached_statements=_STATEMENTS)
    try:
        # SQLite's own LOWER knows ASCII alone.
        connection.create_function("fold", 1, _fold, deterministic=True)
        # FULL: a commit waits for the disk. This is what an answer to a write promises.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        connection.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")
        if not writes:
            connection.execute("PRAGMA query_only = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _fold(text: Any) -> Any:
    return text.lower() if isinstance(text, str) else text


def limit_work(connection: sqlite3.Connection) -> None:
    """From now on, this connection has `WORK_SECONDS`."""
    deadline = time.monotonic() + WORK_SECONDS
    connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS_PER_LOOK)


def translated(error: Exception) -> Exception:
    """What an error of SQLite means to those who use the database. Defects stay what they are."""
    if isinstance(error, sqlite3.IntegrityError):
        return Conflict(str(error))
    if isinstance(error, sqlite3.DataError | OverflowError):
        return ValueError(str(error))
    if isinstance(error, sqlite3.Error) and is_trouble(error):
        return DatabaseGone(str(error))
    return error


def is_trouble(error: sqlite3.Error) -> bool:
    """Whether it is the database that failed, and not a statement."""
    # The lower eight bits are the kind; the others are the details. Errors of the module itself have no code.
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in _TROUBLE


class SqliteTransaction:
    """One piece of work on a connection. After a statement has failed it is over: each further one fails likewise."""

    __slots__ = ("_connection", "_failure")

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._failure: Exception | None = None

    @property
    def dialect(self) -> Dialect:
        return "sqlite"

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        self.check()
        try:
            return max(0, self._connection.execute(sql, parameters).rowcount)
        except Exception as error:
            self._fail(error)

    def one(self, sql: str, parameters: Sequence[Any] = ()) -> Row | None:
        self.check()
        try:
            cursor = self._connection.execute(sql, parameters)
            row = cursor.fetchone()
        except Exception as error:
            self._fail(error)
        return None if row is None else dict(zip(_names(cursor), row, strict=True))

    def all(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        self.check()
        try:
            cursor = self._connection.execute(sql, parameters)
            rows = cursor.fetchall()
        except Exception as error:
            self._fail(error)
        names = _names(cursor)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _fail(self, error: Exception) -> NoReturn:
        self._failure = translated(error)
        if self._failure is error:
            raise error
        raise self._failure from error


def _names(cursor: sqlite3.Cursor) -> list[str]:
    return [column[0] for column in cursor.description or ()]
