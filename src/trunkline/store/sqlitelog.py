"""The log of one session in an SQLite database that holds many.

Records stay in memory until `flush`, which is one transaction. SQLite is set to `synchronous=NORMAL`: a commit is
written to the write-ahead log, which outlives the process, and not waited for. `synchronous=FULL` would be that and a
sync of the write-ahead log after every commit; `sync` does just this sync, once, in a thread, and through a file of
its own, so that neither the event loop nor another session's transaction waits for the disk. (A checkpoint that moves
the records into the database in the meantime syncs both files by itself.)

While another process writes to the database, `flush` waits for `FLUSH_BUSY_SECONDS` at most, then fails with `EBUSY`:
the records stay in memory, and the next `flush` tries again. `sync` does that by itself, for up to `SYNC_BUSY_SECONDS`,
and lets the event loop go on in between. As with files, nothing appended is forgotten up to `appending.UNWRITTEN_BYTES`
(64 MiB); beyond that the oldest records that could not be written are given up, and `read` shows a `Gap` instead.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import chain
from typing import Any

from trunkline.base import jsontext, shapes
from trunkline.core import records
from trunkline.core.events import Envelope, Gap
from trunkline.core.faults import SessionDamaged
from trunkline.core.log import Restored
from trunkline.store import appending, durable, names
from trunkline.store.reading import restored, with_gaps

#: What a reader holds in memory at a time; no transaction stays open while it uses them.
PAGE_BYTES = 256 * 1024

#: What a flush may keep the event loop waiting. Other processes' transactions take milliseconds.
FLUSH_BUSY_SECONDS = 0.05

#: How long a sync goes on trying, and how often: most of that time belongs to the event loop.
SYNC_BUSY_SECONDS = 5.0
SYNC_RETRY_SECONDS = 0.25

_COLUMNS = "session, seq, turn, at, event, data"
_INSERT = f"INSERT INTO records ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (session, seq) DO NOTHING"  # noqa: S608
_BETWEEN = f"SELECT {_COLUMNS} FROM records WHERE session = ? AND seq > ? AND seq < ? ORDER BY seq"  # noqa: S608
_NEWEST_FIRST = f"SELECT {_COLUMNS} FROM records WHERE session = ? ORDER BY seq DESC"  # noqa: S608

_ERRNO = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_BUSY: errno.EBUSY,
    sqlite3.SQLITE_LOCKED: errno.EBUSY,
    sqlite3.SQLITE_READONLY: errno.EROFS,
}

Row = tuple[int, int, int, float | None, str, str]

#: What a row has besides the event's data: its key, its columns, its name. Without it, a log of single words would
#: seem a tenth of its size, and its checkpoints would come that much later.
ROW_BYTES = 80


class SqliteLog:
    """An `EventLog` in a database. Made by `SqliteStore`, whose thread it belongs to."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        key: int,
        session: str,
        *,
        last: int,
        is_new: bool,
        make_durable: Callable[[], None],
        release: Callable[[SqliteLog], None],
    ) -> None:
        self._connection = connection
        self._key = key
        self._session = session
        self._last: float = last
        """The last sequence number; infinite when closed, so that one comparison guards `append`."""
        self._rows: list[Row] = []
        self._size = 0
        """The bytes of their events."""
        self._is_new = is_new
        self._make_durable = make_durable
        self._release = release
        self._flushes = 0
        self._flushes_synced = -1
        """How many flushes are safe; at first not even the session itself."""
        self._is_closed = False

    @property
    def session(self) -> str:
        return self._session

    def append(self, envelope: Envelope) -> int:
        """Add a record. Does not touch the database.

        Raises:
            ValueError: its sequence number is not above the last one, or the log is closed.
            TypeError: its event holds something that is not JSON, or is nested too deep to be read back. It is not
                added.
        """
        seq, event = envelope.seq, envelope.event
        if seq <= self._last:
            self._check()
            raise ValueError(f"record {seq} comes after record {self._last}")
        data = jsontext.dumps(shapes.encode(event))
        appending.refuse_unreadable(data, around=1)
        self._rows.append((self._key, seq, envelope.turn, round(envelope.at, 3), type(event).__name__, data.decode()))
        self._last = seq
        size = len(data) + ROW_BYTES
        self._size += size
        return size

    def flush(self) -> None:
        if not self._rows:
            return
        try:
            with _transaction(self._connection) as connection:
                connection.executemany(_INSERT, self._rows)
                connection.execute("UPDATE sessions SET updated = ? WHERE key = ?", (time.time(), self._key))
        except OSError:
            self._give_up_oldest()
            raise
        self._rows.clear()
        self._size = 0
        self._flushes += 1

    async def sync(self) -> None:
        from asyncio import get_running_loop, shield

        await self._flush_patiently()
        self._check()
        flushes = self._flushes
        if self._flushes_synced < flushes:
            await shield(get_running_loop().run_in_executor(None, self._make_durable))
            self._flushes_synced = max(self._flushes_synced, flushes)

    def read(self, since: int = 0) -> Iterator[Envelope | Gap]:
        """The records after `since`, as many as there are now."""
        self._check()
        pending, last = list(self._rows), int(self._last)
        flushed = self._pages(since, before=pending[0][1] if pending else last + 1)
        return with_gaps(self._envelopes(chain(flushed, pending)), since, last)

    def restore(self) -> Restored:
        self._check()
        with readable(self._session), closing(self._connection.execute(_NEWEST_FIRST, (self._key,))) as rows:
            return restored(self._envelopes(chain(reversed(self._rows), rows)), int(self._last))

    def close(self) -> None:
        """Flush and let go of the session. Idempotent.

        Raises:
            OSError: the last records could not be written. The session is let go of nevertheless.
        """
        if self._is_closed:
            return
        try:
            self.flush()
        finally:
            self._is_closed = True
            # The session may be another's from now on: a sync that still tries must not write to it.
            self._rows.clear()
            self._last = float("inf")
            self._release(self)

    def ending(self) -> None:
        """Nobody waits for a session of a server's store."""

    def discard(self) -> None:
        """Close, and delete the session if this log was made and not opened."""
        if self._is_closed or not self._is_new:
            self.close()
            return
        self._rows.clear()
        self._size = 0
        try:
            with _transaction(self._connection) as connection:
                connection.execute("DELETE FROM records WHERE session = ?", (self._key,))
                connection.execute("DELETE FROM sessions WHERE key = ?", (self._key,))
        finally:
            self.close()

    async def _flush_patiently(self) -> None:
        from asyncio import get_running_loop, sleep

        clock = get_running_loop().time
        deadline = clock() + SYNC_BUSY_SECONDS
        while True:
            try:
                self.flush()
            except OSError as error:
                if error.errno != errno.EBUSY or clock() >= deadline:
                    raise
            else:
                return
            await sleep(SYNC_RETRY_SECONDS)

    def _give_up_oldest(self) -> None:
        enough = self._size - appending.excess(self._size)
        if enough == self._size:
            return
        given_up = 0
        while self._size > enough:
            self._size -= len(self._rows[given_up][-1].encode()) + ROW_BYTES
            given_up += 1
        del self._rows[:given_up]

    def _pages(self, since: int, before: int) -> Iterator[Row]:
        while True:
            self._check()
            page: list[Row] = []
            size = 0
            query = (self._key, since, before)
            with readable(self._session), closing(self._connection.execute(_BETWEEN, query)) as rows:
                for row in rows:
                    page.append(row)
                    size += len(row[-1])
                    if size >= PAGE_BYTES:
                        break
            if not page:
                return
            yield from page
            since = page[-1][1]

    def _envelopes(self, rows: Iterable[Row]) -> Iterator[Envelope]:
        for _, seq, turn, at, event, data in rows:
            try:
                content: dict[str, Any] = {"event": event, "data": jsontext.loads(data.encode(), records.MAX_DEPTH)}
                yield Envelope(self._session, seq, turn, float(at or 0), records.event_of(content))
            except ValueError:
                # Missing from what is given back, and so a gap.
                continue

    def _check(self) -> None:
        if self._is_closed:
            raise ValueError(f"the log of session '{names.shown(self._session)}' is closed")


def make_durable(database: str, directories: Iterable[str] = ()) -> None:
    """Wait until a power cut cannot take back what was committed to a database. For a thread of its own.

    Opening and closing the write-ahead log is harmless; to close the database itself would lose SQLite's locks on it.
    """
    for directory in directories:
        durable.sync_directory(directory)
    try:
        fd = os.open(f"{database}-wal", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        # All of it is in the database by now, and synced.
        return
    try:
        durable.sync_data(fd)
    finally:
        os.close(fd)


def set_busy_seconds(connection: sqlite3.Connection, seconds: float) -> None:
    """How long a connection waits for other processes that write, from now on."""
    connection.execute(f"PRAGMA busy_timeout = {round(seconds * 1000)}")


@contextmanager
def readable(session: str) -> Iterator[None]:
    """Turn SQLite's complaints into a fault of the session."""
    try:
        yield
    except sqlite3.Error as error:
        raise SessionDamaged(f"The log of session '{names.shown(session)}' cannot be read: {error}.") from error


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """All or nothing; SQLite's complaints become `OSError`."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield connection
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise _as_os_error(error) from error
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _as_os_error(error: sqlite3.Error) -> OSError:
    # Extended codes have the plain one in their lowest byte.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_IOERR) & 0xFF
    return OSError(_ERRNO.get(code, errno.EIO), f"the session database cannot be written: {error}")
