"""Many sessions in one SQLite database, for servers. Several processes may share it; each session has one of them.

Beside the database `NAME` stand SQLite's own `NAME-wal` and `NAME-shm`, and `NAME-locks`, a directory with a locked
file for each session that is open. A row in the database could not do that: after `kill -9` it would still be there,
whereas the kernel takes a lock back.

Damage is looked for by SQLite alone: torn writes are noticed, a bit that the disk forgot is not.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from trunkline.base import paths
from trunkline.core.faults import ConfigError, SessionDamaged, SessionExists, SessionNotFound
from trunkline.core.log import SessionInfo
from trunkline.store import locks, names
from trunkline.store.explaining import explained
from trunkline.store.migrations import NewerDatabase, migrate
from trunkline.store.sqlitelog import FLUSH_BUSY_SECONDS, SqliteLog, make_durable, set_busy_seconds

#: How long opening a database and making a session wait for other processes. Their transactions take milliseconds; one
#: that takes longer is a fault, and the caller must hear of it. Writing records never waits that long: see `sqlitelog`.
BUSY_SECONDS = 5.0

_LOCK_FLAGS = os.O_RDWR | os.O_CREAT

# Session ids and workspaces are blobs: SQLite's text ends at a NUL, and cannot hold lone surrogates.
# Without rowids: measured 10% smaller and 10% faster, and records are only ever reached by session and number. An index
# of checkpoints would help nobody: who restores reads back from the end, and needs all that comes after the checkpoint.
MIGRATIONS = (
    (
        """
        CREATE TABLE sessions (
            key INTEGER PRIMARY KEY,
            id BLOB NOT NULL UNIQUE,
            workspace BLOB NOT NULL,
            created REAL NOT NULL,
            updated REAL NOT NULL
        )
        """,
        """
        CREATE TABLE records (
            session INTEGER NOT NULL REFERENCES sessions (key),
            seq INTEGER NOT NULL,
            turn INTEGER NOT NULL,
            at REAL,
            event TEXT NOT NULL,
            data TEXT NOT NULL,
            PRIMARY KEY (session, seq)
        ) WITHOUT ROWID
        """,
    ),
)


class SqliteStore:
    """A `SessionStore` in a database. Belongs to the thread that made it. Close it when done."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open a database, or make one.

        Raises:
            SessionDamaged: the file is no database that this version can read.
            ConfigError: it cannot be opened.
        """
        self._path = os.path.abspath(os.fspath(path))
        self._lock_directory = f"{self._path}-locks"
        self._locks: dict[SqliteLog, tuple[int, str]] = {}
        self._lost: OSError | None = None
        with self._explained():
            made = paths.ensure_dir(os.path.dirname(self._path))
            paths.ensure_dir(self._lock_directory)
            self._connection = self._connect()
        self._unsynced_dirs: tuple[str, ...] = (os.path.dirname(self._path), *map(os.path.dirname, made))

    def create(self, session: str, workspace: str) -> SqliteLog:
        identity = names.key(session)
        now = time.time()
        row = (identity, workspace.encode("utf-8", "surrogatepass"), now, now)
        insert = (
            "INSERT INTO sessions (id, workspace, created, updated) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO NOTHING"
        )
        with self._explained(), self._locked(session) as lock, self._patiently():
            added = self._connection.execute(insert, row)
            if not added.rowcount:
                raise SessionExists(f"Session ID '{names.shown(session)}' already exists")
            return self._log(lock, int(added.lastrowid or 0), session, last=0, is_new=True)

    def open(self, session: str) -> SqliteLog:
        with self._explained(), self._patiently():
            key = self._one("SELECT key FROM sessions WHERE id = ?", names.key(session))
            if key is None:
                raise SessionNotFound(f"Session '{names.shown(session)}' not found")
            with self._locked(session) as lock:
                last = self._one("SELECT max(seq) FROM records WHERE session = ?", key)
                return self._log(lock, int(key), session, last=int(last or 0), is_new=False)

    def latest(self, workspace: str) -> str:
        query = "SELECT id FROM sessions WHERE workspace = ? ORDER BY updated DESC, key DESC LIMIT 1"
        with self._explained():
            found = self._one(query, workspace.encode("utf-8", "surrogatepass"))
        if found is None:
            raise SessionNotFound(f"No sessions found in `{workspace}`")
        return names.from_key(bytes(found))

    def close(self) -> None:
        """Close every log that is still open, and the database. Idempotent."""
        try:
            for log in list(self._locks):
                log.close()
        finally:
            self._connection.close()

    def list(self) -> list[SessionInfo]:
        with self._explained():
            rows = self._connection.execute(
                "SELECT id, workspace, created, updated FROM sessions ORDER BY updated DESC, key DESC"
            ).fetchall()
        return [SessionInfo(names.from_key(row[0]), names.from_key(row[1]), row[2], row[3]) for row in rows]

    def _connect(self) -> sqlite3.Connection:
        # One at a time: SQLite does not wait for its turn when two processes switch to a write-ahead log at once.
        guard = os.open(os.path.join(self._lock_directory, "~"), _LOCK_FLAGS | os.O_CLOEXEC, locks.PRIVATE_FILE)
        try:
            locks.wait(guard)
            self._touch()
            connection = sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None)
            try:
                self._prepare(connection)
                set_busy_seconds(connection, FLUSH_BUSY_SECONDS)
            except BaseException:
                connection.close()
                raise
            return connection
        finally:
            os.close(guard)

    def _touch(self) -> None:
        """Make the file private from the beginning; SQLite gives its other files the same permissions."""
        try:
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, locks.PRIVATE_FILE))
        except FileExistsError:
            pass

    def _prepare(self, connection: sqlite3.Connection) -> None:
        mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        if mode != "wal":
            raise ConfigError(
                f"The session database `{self._path}` cannot have a write-ahead log.",
                hint="Put it on a local file system.",
            )
        connection.execute("PRAGMA synchronous = NORMAL")
        try:
            migrate(connection, MIGRATIONS)
        except NewerDatabase as error:
            raise SessionDamaged(
                f"The session database `{self._path}` was made by a newer version: {error}.",
                hint="Upgrade Trunkline, or choose another database.",
            ) from None

    def _one(self, query: str, parameter: object) -> Any:
        row = self._connection.execute(query, (parameter,)).fetchone()
        return None if row is None else row[0]

    def _log(self, lock: tuple[int, str], key: int, session: str, *, last: int, is_new: bool) -> SqliteLog:
        log = SqliteLog(
            self._connection,
            key,
            session,
            last=last,
            is_new=is_new,
            make_durable=self._make_durable,
            release=self._release,
        )
        self._locks[log] = lock
        return log

    def _make_durable(self) -> None:
        """In a thread."""
        try:
            if self._lost is not None:
                # The kernel forgets what it could not write, and a second try would seem to succeed.
                raise OSError(self._lost.errno, f"an earlier write was lost: {self._lost.strerror}")
            make_durable(self._path, self._unsynced_dirs)
        except OSError as error:
            self._lost = error
            raise
        self._unsynced_dirs = ()

    @contextmanager
    def _locked(self, session: str) -> Iterator[tuple[int, str]]:
        """The lock of a session, which is kept unless something goes wrong."""
        path = os.path.join(self._lock_directory, names.file_name(session) + ".lock")
        fd = locks.take(path, session, _LOCK_FLAGS)
        try:
            yield fd, path
        except BaseException:
            _let_go(fd, path)
            raise

    @contextmanager
    def _patiently(self) -> Iterator[None]:
        """Wait longer than usual for other processes."""
        set_busy_seconds(self._connection, BUSY_SECONDS)
        try:
            yield
        finally:
            set_busy_seconds(self._connection, FLUSH_BUSY_SECONDS)

    def _release(self, log: SqliteLog) -> None:
        _let_go(*self._locks.pop(log))

    def _explained(self) -> AbstractContextManager[None]:
        return explained("session database", self._path, SessionDamaged)


def _let_go(fd: int, path: str) -> None:
    # While it is locked, so that nobody else's file is removed; who has opened it already will see that it is gone.
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    finally:
        os.close(fd)
