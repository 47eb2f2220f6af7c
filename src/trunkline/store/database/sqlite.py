"""A database in a SQLite file: one thread writes, some read, and writes that wait share a commit.

Beside the file `NAME` stand SQLite's own `NAME-wal` and `NAME-shm`, and `NAME-lock`, which is locked as long as a
server has the database open: there is one server for one file, since what its watchers see and how often its agents
write is known to that server alone. Other programs may read the file, or copy it, at any time.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Sequence
from typing import Any, TypeVar
from urllib.parse import quote

from trunkline.base import paths
from trunkline.base.values import Value
from trunkline.core.faults import ConfigError
from trunkline.store import locks
from trunkline.store.database import DatabaseGone, Dialect, Work
from trunkline.store.database import form as forms
from trunkline.store.database.form import Form
from trunkline.store.database.sqlite_connection import SqliteTransaction, connect, is_trouble, limit_work
from trunkline.store.database.worker_pool import Job, WorkerPool
from trunkline.store.durable import sync_directory
from trunkline.store.explaining import explained

#: Works that share one commit. Waiting for the disk costs as much as a few works: more would only make the first wait.
MAX_GROUP = 128
#: Readers. Python runs one of them at a time; several keep a long search from stopping the short reads.
READERS = 3

T = TypeVar("T")


class SqliteDatabase:
    """An open database file. Belongs to the event loop in which it was opened."""

    def __init__(self, file: _File, owner: str, *, most_at_once: int = MAX_GROUP) -> None:
        """Take over a file that `open_sqlite` has made ready, and the lock of it."""
        self._lock: int | None = file.lock
        self._writer = WorkerPool(f"{owner}-writer", [_Writer(file)], most_at_once)
        self._readers = WorkerPool(f"{owner}-reader", [_Reader(file) for _ in range(READERS)])

    @property
    def dialect(self) -> Dialect:
        return "sqlite"

    async def read(self, work: Work[T]) -> T:
        return await self._readers.do(work)

    async def write(self, work: Work[T]) -> T:
        return await self._writer.do(work)

    async def close(self) -> None:
        # The last connection to close empties the write-ahead log: it has to be one that may write.
        await self._readers.close()
        await self._writer.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


async def open_sqlite(path: str, form: Form, *, most_at_once: int = MAX_GROUP) -> SqliteDatabase:
    """Open a database file, or make one, for this process alone.

    Args:
        most_at_once: how many works may share a commit.

    Raises:
        ConfigError: it cannot be opened, another process has it open, or it is somebody else's.
    """
    file = await asyncio.to_thread(_prepare, path, form)
    return SqliteDatabase(file, form.owner, most_at_once=most_at_once)


def examine_sqlite(path: str, form: Form) -> None:
    """See whether a file that no process has open could be opened, and change nothing. A missing one could be made.

    Raises:
        ConfigError: it cannot be read, or it is somebody else's, or a newer version's.
    """
    with explained(form.what, path):
        if not os.path.lexists(path):
            return
        # Neither a lock nor a log beside it: nothing is left behind.
        connection = sqlite3.connect(f"file:{quote(os.path.abspath(path))}?mode=ro&immutable=1", uri=True)
        try:
            forms.check_sqlite(connection, path, form)
        finally:
            connection.close()


class _File(Value):
    """The file, as it was when it was opened."""

    path: str
    status: os.stat_result
    lock: int

    def check(self) -> None:
        """Make sure that it is still in its place: SQLite would go on to write into a file that nobody can find.

        Raises:
            DatabaseGone: it is not.
        """
        try:
            if os.path.samestat(os.stat(self.path), self.status):
                return
        except OSError:
            pass
        raise DatabaseGone(f"the file `{self.path}` was moved away: put it back, or start the server again")


def _prepare(path: str, form: Form) -> _File:
    """Bring the file to the form that this version expects, and lock it."""
    path = os.path.abspath(path)
    with explained(form.what, path):
        made = paths.ensure_dir(os.path.dirname(path))
        lock = _locked(path, form)
        try:
            # Private from the beginning; SQLite gives its other files the same permissions.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, locks.PRIVATE_FILE))
            _bring_up(path, form)
            for directory in (os.path.dirname(path), *map(os.path.dirname, made)):
                sync_directory(directory)
            file = _File(path, os.stat(path), lock)
        except BaseException:
            os.close(lock)
            raise
    return file


def _locked(path: str, form: Form) -> int:
    lock = os.open(f"{path}-lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, locks.PRIVATE_FILE)
    if locks.lock(lock):
        return lock
    pid = locks.holder(lock)
    os.close(lock)
    raise ConfigError(
        f"The {form.what} `{path}` is in use{f' by process {pid}' if pid else ''}.",
        hint="Stop that one, or choose another file; several servers can share a PostgreSQL database.",
    )


def _bring_up(path: str, form: Form) -> None:
    connection = connect(path, writes=True)
    try:
        if connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
            raise ConfigError(
                f"The {form.what} `{path}` cannot have a write-ahead log.", hint="Put it on a local file system."
            )
        forms.sqlite(connection, path, form)
    finally:
        connection.close()


class _Connected:
    """A worker's connection, made when it is needed, and made anew when it could not be mended."""

    def __init__(self, file: _File, *, writes: bool) -> None:
        self._file = file
        self._writes = writes
        self._connection: sqlite3.Connection | None = None

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _begin(self, statement: str) -> sqlite3.Connection:
        self._file.check()
        if self._connection is None:
            self._connection = connect(self._file.path, writes=self._writes)
        self._connection.execute(statement)
        return self._connection

    def _undo(self) -> None:
        """Take back what was begun, if SQLite has not done so already."""
        try:
            if self._connection is not None and self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            self.close()


class _Reader(_Connected):
    """Reads, each piece of work on one state of the database."""

    def __init__(self, file: _File) -> None:
        super().__init__(file, writes=False)

    def run(self, jobs: Sequence[Job[Any]]) -> None:
        for job in jobs:
            try:
                connection = self._begin("BEGIN")
                limit_work(connection)
                job.run(SqliteTransaction(connection))
            except (sqlite3.Error, DatabaseGone) as error:
                job.error = _gone(error)
            finally:
                self._undo()


class _Writer(_Connected):
    """Writes: all that waits in one transaction, each piece of work in a savepoint of it."""

    def __init__(self, file: _File) -> None:
        super().__init__(file, writes=True)

    def run(self, jobs: Sequence[Job[Any]]) -> None:
        try:
            connection = self._begin("BEGIN IMMEDIATE")
            if len(jobs) == 1:
                self._alone(connection, jobs[0])
            else:
                self._together(connection, jobs)
        except (sqlite3.Error, DatabaseGone) as error:
            # None of them is kept, whatever their works have said.
            for job in jobs:
                job.error = _gone(error)
        finally:
            self._undo()

    def _alone(self, connection: sqlite3.Connection, job: Job[Any]) -> None:
        """Without a savepoint: undoing it undoes everything."""
        limit_work(connection)
        if job.run(SqliteTransaction(connection)):
            connection.execute("COMMIT")

    def _together(self, connection: sqlite3.Connection, jobs: Sequence[Job[Any]]) -> None:
        for job in jobs:
            connection.execute("SAVEPOINT work")
            limit_work(connection)
            done = job.run(SqliteTransaction(connection))
            if not connection.in_transaction:
                # After some errors, such as that of a full disk, SQLite undoes the whole transaction by itself.
                raise DatabaseGone(f"the transaction was undone: {job.error}")
            if not done:
                connection.execute("ROLLBACK TO work")
            connection.execute("RELEASE work")
        connection.execute("COMMIT")


def _gone(error: Exception) -> Exception:
    """What a caller is told. Each gets one of its own: they travel to different places."""
    if isinstance(error, sqlite3.Error) and not is_trouble(error):
        return error
    return DatabaseGone(str(error))
