"""What one agent's runner remembers, where every launcher finds it that may run the agent one day.

It is written only under a lease that is still ours: what a launcher did not get to write down before that was over,
whoever runs the agent now finds out by itself.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from trunkline.base import jsontext
from trunkline.core.faults import StoreUnavailable
from trunkline.runner import state
from trunkline.runner.shared.leases import Lease
from trunkline.runner.shared.schema import NOW
from trunkline.runner.state import StateRow, blob, unblob
from trunkline.store.database import DatabaseError, Transaction

if TYPE_CHECKING:
    from trunkline.store.database.postgres_session import PostgresSession

#: Leaves the newest rows of an agent in a table.
_NEWEST = (
    "DELETE FROM {0} WHERE agent_id = ? AND key NOT IN "
    "(SELECT key FROM {0} WHERE agent_id = ? ORDER BY key DESC LIMIT ?)"
)


@contextmanager
def explained() -> Iterator[None]:
    """Raise a fault for what goes wrong with the database within."""
    try:
        yield
    except DatabaseError as error:
        raise StoreUnavailable(f"The runner's database cannot be used now: {error}.") from None


class SharedMemory:
    """A `RunnerMemory` in rows."""

    def __init__(self, session: PostgresSession, lease: Lease) -> None:
        """Nothing is asked of the database yet."""
        self._session = session
        self._lease = lease
        self._agent = lease.agent_id

    def close(self) -> None:
        return None

    @asynccontextmanager
    async def turn(self, patience: float) -> AsyncIterator[None]:
        # Others cannot run a cycle as long as the lease is ours.
        await self._lease.begin_cycle()
        yield

    # Feedback

    def add_feedback(self, payload: dict[str, Any]) -> None:
        with self._writing() as tx:
            tx.execute(
                "INSERT INTO runner_feedback (agent_id, payload) VALUES (?, ?)", (self._agent, jsontext.dumps(payload))
            )
            tx.execute(_NEWEST.format("runner_feedback"), (self._agent, self._agent, state.MAX_FEEDBACK))

    def oldest_feedback(self, most: int) -> list[StateRow]:
        with self._reading() as tx:
            rows = tx.all(
                "SELECT key, payload FROM runner_feedback WHERE agent_id = ? ORDER BY key LIMIT ?", (self._agent, most)
            )
        return [StateRow(row["key"], jsontext.loads(row["payload"])) for row in rows]

    def remove_feedback(self, keys: Iterable[int]) -> None:
        with self._writing() as tx:
            tx.execute("DELETE FROM runner_feedback WHERE agent_id = ? AND key = ANY(?)", (self._agent, list(keys)))

    # Writes on their way

    def begin_write(self, action: dict[str, Any]) -> int:
        with self._writing() as tx:
            row = tx.one(
                "INSERT INTO runner_write (agent_id, action, sent, noted_at) "  # noqa: S608 - a fixed text
                f"VALUES (?, ?, ?, {NOW}) RETURNING key",
                (self._agent, jsontext.dumps(action), time.time()),
            )
        return int(row["key"]) if row else 0

    def end_write(self, key: int, id: str | None = None) -> None:
        with self._writing() as tx:
            tx.execute("DELETE FROM runner_write WHERE agent_id = ? AND key = ?", (self._agent, key))
            if id is not None:
                tx.execute(
                    "INSERT INTO runner_written (agent_id, post) VALUES (?, ?) ON CONFLICT DO NOTHING",
                    (self._agent, blob(id)),
                )
                tx.execute(_NEWEST.format("runner_written"), (self._agent, self._agent, state.MAX_WRITTEN))

    def open_writes(self) -> list[StateRow]:
        with self._reading() as tx:
            rows = tx.all(
                f"SELECT key, action, sent, {NOW} - noted_at AS age "  # noqa: S608 - a fixed text
                "FROM runner_write WHERE agent_id = ? ORDER BY key",
                (self._agent,),
            )
        return [StateRow(row["key"], jsontext.loads(row["action"]), row["sent"], row["age"] / 1000) for row in rows]

    def is_written(self, id: str) -> bool:
        with self._reading() as tx:
            found = tx.one(
                "SELECT 1 AS found FROM runner_written WHERE agent_id = ? AND post = ?", (self._agent, blob(id))
            )
        return found is not None

    # Issues made of reports

    def issue(self, subject: str) -> tuple[str, dict[str, Any]] | None:
        with self._reading() as tx:
            row = tx.one(
                "SELECT state, data FROM runner_issue WHERE agent_id = ? AND subject = ?", (self._agent, blob(subject))
            )
        return (row["state"], jsontext.loads(row["data"])) if row else None

    def set_issue(self, subject: str, state: str, data: dict[str, Any]) -> None:
        with self._writing() as tx:
            tx.execute(
                "INSERT INTO runner_issue (agent_id, subject, state, data) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (agent_id, subject) DO UPDATE SET state = excluded.state, data = excluded.data",
                (self._agent, blob(subject), state, jsontext.dumps(data)),
            )

    def drop_issue(self, subject: str) -> None:
        with self._writing() as tx:
            tx.execute("DELETE FROM runner_issue WHERE agent_id = ? AND subject = ?", (self._agent, blob(subject)))

    def issues(self, state: str) -> list[tuple[str, dict[str, Any]]]:
        with self._reading() as tx:
            rows = tx.all(
                "SELECT subject, data FROM runner_issue WHERE agent_id = ? AND state = ? ORDER BY subject",
                (self._agent, state),
            )
        return [(unblob(row["subject"]), jsontext.loads(row["data"])) for row in rows]

    # Numbers

    def next_number(self, name: str) -> int:
        with self._writing() as tx:
            row = tx.one(
                "INSERT INTO runner_mark AS known (agent_id, name, value) VALUES (?, ?, 0) "
                "ON CONFLICT (agent_id, name) DO UPDATE SET value = known.value + 1 RETURNING value",
                (self._agent, name),
            )
        return int(row["value"]) if row else 0

    @contextmanager
    def _writing(self) -> Iterator[Transaction]:
        with explained(), self._session.transaction() as tx:
            self._lease.enter(tx)
            yield tx

    @contextmanager
    def _reading(self) -> Iterator[Transaction]:
        with explained(), self._session.transaction() as tx:
            yield tx
