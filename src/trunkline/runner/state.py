"""What one agent's runner remembers between cycles and restarts: feedback, writes on their way, issues, marks.

A small SQLite database, private to its owner, in `runner/agents/` of the state directory. What a method did is on the
disk when it returns. Several processes may use it; `turn` lets one cycle run at a time.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any

from trunkline.base import jsontext, paths
from trunkline.base.values import Value
from trunkline.core.faults import AgentBusy, ConfigError
from trunkline.store import locks, names
from trunkline.store.explaining import explained
from trunkline.store.migrations import NewerDatabase, migrate

#: How long to wait for another process's transaction, which takes milliseconds.
BUSY_SECONDS = 5.0
#: How often a cycle of another process is looked after. It takes seconds.
LOOK_SECONDS = 0.05

#: Feedback that waits to be told. A model that does not answer for days gets the newest.
MAX_FEEDBACK = 200
#: Writes whose fate is not known. More mean that the network cannot be asked at all; the oldest are given up.
MAX_WRITES = 100

# Texts are blobs: SQLite's text cannot hold lone surrogates.
MIGRATIONS = (
    (
        "CREATE TABLE feedback (key INTEGER PRIMARY KEY AUTOINCREMENT, payload BLOB NOT NULL)",
        "CREATE TABLE writes (key INTEGER PRIMARY KEY AUTOINCREMENT, action BLOB NOT NULL, sent REAL NOT NULL)",
        "CREATE TABLE issues (subject BLOB PRIMARY KEY, state TEXT NOT NULL, data BLOB NOT NULL) WITHOUT ROWID",
        "CREATE TABLE marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
    ),
)


class Kept(Value):
    """A row: its key, its JSON object, and when it was written (Unix time; 0 where that is not kept)."""

    key: int
    data: dict[str, Any]
    at: float = 0.0


class AgentState:
    """The memory of one agent. Belongs to the thread that made it. Close it when done."""

    def __init__(self, home: str, agent_id: str) -> None:
        """Open the database, or make it.

        Raises:
            ConfigError: it cannot be opened, or a newer version made it.
        """
        self.path = os.path.join(home, "runner", "agents", f"{names.file_name(agent_id)}.db")
        with self._explained():
            paths.ensure_dir(os.path.dirname(self.path))
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, locks.PRIVATE_FILE))
            self._connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = FULL")
                migrate(self._connection, MIGRATIONS)
            except NewerDatabase as error:
                self._connection.close()
                raise ConfigError(f"The runner's database `{self.path}` is of a newer version: {error}.") from None
            except BaseException:
                self._connection.close()
                raise

    def close(self) -> None:
        """Let go of it. Idempotent."""
        self._connection.close()

    @asynccontextmanager
    async def turn(self, patience: float) -> AsyncIterator[None]:
        """Run a cycle alone, whichever process the others run in.

        Raises:
            AgentBusy: another one is still running after `patience` seconds.
        """
        with self._explained():
            fd = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, locks.PRIVATE_FILE)
        try:
            until = time.monotonic() + patience
            while not locks.lock(fd):
                if time.monotonic() > until:
                    pid = locks.holder(fd)
                    by = f" by process {pid}" if pid else ""
                    raise AgentBusy(f"A cycle of this agent is being run{by}.")
                await asyncio.sleep(LOOK_SECONDS)
            yield
        finally:
            os.close(fd)

    # Feedback

    def add_feedback(self, payload: dict[str, Any]) -> None:
        """Keep something for the next prompt."""
        self._execute("INSERT INTO feedback (payload) VALUES (?)", jsontext.dumps(payload))
        self._execute("DELETE FROM feedback WHERE key <= (SELECT max(key) FROM feedback) - ?", MAX_FEEDBACK)

    def newest_feedback(self, most: int) -> list[Kept]:
        """The newest, oldest first."""
        rows = self._rows("SELECT key, payload, 0 FROM feedback ORDER BY key DESC LIMIT ?", most)
        return rows[::-1]

    def remove_feedback(self, keys: Iterable[int]) -> None:
        """It has been told."""
        self._all("DELETE FROM feedback WHERE key = ?", [(key,) for key in keys])

    # Writes on their way

    def begin_write(self, action: dict[str, Any]) -> int:
        """A write is about to be sent: from now on its fate is not known."""
        key = self._execute("INSERT INTO writes (action, sent) VALUES (?, ?)", jsontext.dumps(action), time.time())
        self._execute("DELETE FROM writes WHERE key <= (SELECT max(key) FROM writes) - ?", MAX_WRITES)
        return int(key.lastrowid or 0)

    def end_write(self, key: int) -> None:
        """Its fate is known."""
        self._execute("DELETE FROM writes WHERE key = ?", key)

    def open_writes(self) -> list[Kept]:
        """Those whose fate is not known, oldest first."""
        return self._rows("SELECT key, action, sent FROM writes ORDER BY key")

    # Issues made of reports

    def issue(self, subject: str) -> tuple[str, dict[str, Any]] | None:
        """How far the issue of a report is, and what is known of it."""
        row = self._execute("SELECT state, data FROM issues WHERE subject = ?", _blob(subject)).fetchone()
        return None if row is None else (row[0], jsontext.loads(row[1]))

    def set_issue(self, subject: str, state: str, data: dict[str, Any]) -> None:
        """It is so far now."""
        self._execute(
            "INSERT INTO issues (subject, state, data) VALUES (?, ?, ?)"
            " ON CONFLICT (subject) DO UPDATE SET state = excluded.state, data = excluded.data",
            _blob(subject), state, jsontext.dumps(data),
        )  # fmt: skip

    def drop_issue(self, subject: str) -> None:
        """There is none."""
        self._execute("DELETE FROM issues WHERE subject = ?", _blob(subject))

    def issues(self, state: str) -> list[tuple[str, dict[str, Any]]]:
        """All that are so far: the report, and what is known of its issue."""
        rows = self._execute("SELECT subject, data FROM issues WHERE state = ?", state).fetchall()
        return [(row[0].decode("utf-8", "surrogatepass"), jsontext.loads(row[1])) for row in rows]

    # Numbers

    def next_number(self, name: str) -> int:
        """0, then 1, and so on: a count that goes on after a restart."""
        row = self._execute(
            "INSERT INTO marks (name, value) VALUES (?, 0) ON CONFLICT (name) DO UPDATE SET value = value + 1"
            " RETURNING value",
            name,
        ).fetchone()
        return int(row[0])

    def _execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        with self._explained():
            return self._connection.execute(sql, parameters)

    def _all(self, sql: str, rows: list[tuple[Any, ...]]) -> None:
        with self._explained():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._connection.executemany(sql, rows)
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def _rows(self, sql: str, *parameters: Any) -> list[Kept]:
        return [Kept(key, jsontext.loads(data), at) for key, data, at in self._execute(sql, *parameters).fetchall()]

    def _explained(self) -> AbstractContextManager[None]:
        return explained("runner's database", self.path)


def _blob(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
