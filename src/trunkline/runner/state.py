"""What one agent's runner remembers between cycles and restarts: feedback, writes on their way, issues, marks.

A small SQLite database, private to its owner, in `runner/agents/` of the state directory. What a method did is on the
disk when it returns. Several processes and threads may use it; `turn` lets one cycle run at a time.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from typing import Any, Protocol

from trunkline.base import jsontext
from trunkline.base.values import Value
from trunkline.core.faults import AgentBusy
from trunkline.store import locks, names
from trunkline.store.explaining import explained
from trunkline.store.private import open_private
from trunkline.store.transactions import write_transaction

#: How long to wait for another process's transaction, which takes milliseconds. Less than a cycle that was told to end
#: may take to do so.
BUSY_SECONDS = 2.0
#: How often a cycle of another process is looked after. It takes seconds.
LOOK_SECONDS = 0.05

#: Feedback that waits to be told. A model that does not answer for days gets the newest.
MAX_FEEDBACK = 200
#: Posts that are known to be answered. More than an agent writes while one of its writes is looked for.
MAX_WRITTEN = 5000

# Texts are blobs: SQLite's text cannot hold lone surrogates.
MIGRATIONS = (
    (
        "CREATE TABLE feedback (key INTEGER PRIMARY KEY AUTOINCREMENT, payload BLOB NOT NULL)",
        "CREATE TABLE writes (key INTEGER PRIMARY KEY AUTOINCREMENT, action BLOB NOT NULL, sent REAL NOT NULL)",
        "CREATE TABLE issues (subject BLOB PRIMARY KEY, state TEXT NOT NULL, data BLOB NOT NULL) WITHOUT ROWID",
        "CREATE TABLE marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
    ),
    ("CREATE TABLE written (key INTEGER PRIMARY KEY AUTOINCREMENT, id BLOB NOT NULL UNIQUE)",),
)

#: Leaves the newest rows of a table. (Keys may have gaps: what was removed does not count.)
_NEWEST = "DELETE FROM {0} WHERE key NOT IN (SELECT key FROM {0} ORDER BY key DESC LIMIT ?)"

_Step = tuple[str, tuple[Any, ...]]


class StateRow(Value):
    """A row: its key, its JSON object, and when it was written (Unix time; 0 where that is not kept)."""

    key: int
    data: dict[str, Any]
    at: float = 0.0
    age: float = 0.0
    """How many seconds ago that was, by one clock for all who write and read."""


class RunnerMemory(Protocol):
    """What one agent's runner remembers. Its methods wait for a disk or a server: call them in a thread."""

    def close(self) -> None:
        """Let go of it, after what is under way. Idempotent."""

    def turn(self, patience: float) -> AbstractAsyncContextManager[None]:
        """Run a cycle alone, whichever process the others run in.

        Raises:
            AgentBusy: another one is still running after `patience` seconds.
        """

    def add_feedback(self, payload: dict[str, Any]) -> None:
        """Keep something for the next prompt. If too much waits, the oldest is dropped."""

    def oldest_feedback(self, most: int) -> list[StateRow]:
        """What has waited longest, oldest first."""

    def remove_feedback(self, keys: Iterable[int]) -> None:
        """It has been told."""

    def begin_write(self, action: dict[str, Any]) -> int:
        """A write is about to be sent: from now on its fate is not known."""

    def end_write(self, key: int, id: str | None = None) -> None:
        """Its fate is known; `id`: of the post that it became."""

    def open_writes(self) -> list[StateRow]:
        """Those whose fate is not known, oldest first."""

    def is_written(self, id: str) -> bool:
        """Whether a post is what a write became whose fate is known."""

    def issue(self, subject: str) -> tuple[str, dict[str, Any]] | None:
        """How far the issue of a report is, and what is known of it."""

    def set_issue(self, subject: str, state: str, data: dict[str, Any]) -> None:
        """It is so far now."""

    def drop_issue(self, subject: str) -> None:
        """There is none."""

    def issues(self, state: str) -> list[tuple[str, dict[str, Any]]]:
        """All that are so far: the report, and what is known of its issue."""

    def next_number(self, name: str) -> int:
        """0, then 1, and so on: a count that goes on after a restart."""


#: What it is to people.
_WHAT = "runner's database"


class AgentState:
    """A `RunnerMemory` in a file. Close it when done."""

    def __init__(self, home: str, agent_id: str) -> None:
        """Open the database, or make it.

        Raises:
            ConfigError: it cannot be opened, or a newer version made it.
        """
        self.path = os.path.join(home, "runner", "agents", f"{names.file_name(agent_id)}.db")
        self._one_at_a_time = threading.Lock()
        self._connection = open_private(self.path, _WHAT, MIGRATIONS, busy_seconds=BUSY_SECONDS, any_thread=True)

    def close(self) -> None:
        """Let go of it, after what is under way. Idempotent."""
        with self._one_at_a_time:
            self._connection.close()

    @asynccontextmanager
    async def turn(self, patience: float) -> AsyncIterator[None]:
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
        self._all(
            ("INSERT INTO feedback (payload) VALUES (?)", (jsontext.dumps(payload),)),
            (_NEWEST.format("feedback"), (MAX_FEEDBACK,)),
        )

    def oldest_feedback(self, most: int) -> list[StateRow]:
        return self._kept("SELECT key, payload, 0 FROM feedback ORDER BY key LIMIT ?", most)

    def remove_feedback(self, keys: Iterable[int]) -> None:
        self._all(*(("DELETE FROM feedback WHERE key = ?", (key,)) for key in keys))

    # Writes on their way

    def begin_write(self, action: dict[str, Any]) -> int:
        rows = self._rows(
            "INSERT INTO writes (action, sent) VALUES (?, ?) RETURNING key", jsontext.dumps(action), time.time()
        )
        return int(rows[0][0])

    def end_write(self, key: int, id: str | None = None) -> None:
        steps: list[_Step] = [("DELETE FROM writes WHERE key = ?", (key,))]
        if id is not None:
            steps.append(("INSERT OR IGNORE INTO written (id) VALUES (?)", (blob(id),)))
            steps.append((_NEWEST.format("written"), (MAX_WRITTEN,)))
        self._all(*steps)

    def open_writes(self) -> list[StateRow]:
        now, rows = time.time(), self._kept("SELECT key, action, sent FROM writes ORDER BY key")
        return [row.replace(age=now - row.at) for row in rows]

    def is_written(self, id: str) -> bool:
        return bool(self._rows("SELECT 1 FROM written WHERE id = ?", blob(id)))

    # Issues made of reports

    def issue(self, subject: str) -> tuple[str, dict[str, Any]] | None:
        rows = self._rows("SELECT state, data FROM issues WHERE subject = ?", blob(subject))
        return (rows[0][0], jsontext.loads(rows[0][1])) if rows else None

    def set_issue(self, subject: str, state: str, data: dict[str, Any]) -> None:
        self._rows(
            "INSERT INTO issues (subject, state, data) VALUES (?, ?, ?)"
            " ON CONFLICT (subject) DO UPDATE SET state = excluded.state, data = excluded.data",
            blob(subject), state, jsontext.dumps(data),
        )  # fmt: skip

    def drop_issue(self, subject: str) -> None:
        self._rows("DELETE FROM issues WHERE subject = ?", blob(subject))

    def issues(self, state: str) -> list[tuple[str, dict[str, Any]]]:
        rows = self._rows("SELECT subject, data FROM issues WHERE state = ?", state)
        return [(unblob(row[0]), jsontext.loads(row[1])) for row in rows]

    # Numbers

    def next_number(self, name: str) -> int:
        rows = self._rows(
            "INSERT INTO marks (name, value) VALUES (?, 0) ON CONFLICT (name) DO UPDATE SET value = value + 1"
            " RETURNING value",
            name,
        )
        return int(rows[0][0])

    def _rows(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        with self._explained(), self._one_at_a_time:
            return self._connection.execute(sql, parameters).fetchall()

    def _all(self, *steps: _Step) -> None:
        """All of them, or none."""
        with self._explained(), self._one_at_a_time, write_transaction(self._connection):
            for sql, parameters in steps:
                self._connection.execute(sql, parameters)

    def _kept(self, sql: str, *parameters: Any) -> list[StateRow]:
        return [StateRow(key, jsontext.loads(data), at) for key, data, at in self._rows(sql, *parameters)]

    def _explained(self) -> AbstractContextManager[None]:
        return explained(_WHAT, self.path)


def blob(text: str) -> bytes:
    """A text as a database holds it, halves of characters included."""
    return text.encode("utf-8", "surrogatepass")


def unblob(data: bytes) -> str:
    """The text again."""
    return data.decode("utf-8", "surrogatepass")
