"""How often an agent may write: so many times in any minute, and not once more.

A network on SQLite is one process and counts in memory; several on one PostgreSQL count together, in its rows.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from trunkline.base.asgi_answers import Refused
from trunkline.store.database import Dialect, Transaction

#: The minute.
SECONDS = 60.0
#: The status of an answer to who writes too often.
TOO_OFTEN = 429

#: By the database's clock, also after a wait for another transaction: those of the servers differ.
_NOW = "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT"
#: The oldest write that counts: with it, the limit is reached as long as it is less than a minute old.
_OLDEST = "known.moments[cardinality(known.moments) + 1 - ?]"
#: No more moments than the limit are ever needed.
_SPEND = (
    f"INSERT INTO write_rate AS known (agent_id, moments) VALUES (?, ARRAY[{_NOW}]) "  # noqa: S608 - fixed texts
    "ON CONFLICT (agent_id) DO UPDATE "
    f"SET moments = (known.moments || {_NOW})[GREATEST(1, cardinality(known.moments) + 2 - ?):] "
    f"WHERE cardinality(known.moments) < ? OR {_OLDEST} <= {_NOW} - ?"
)
_LEFT = f"SELECT {_OLDEST} + ? - {_NOW} AS milliseconds FROM write_rate AS known WHERE agent_id = ?"  # noqa: S608 - the same


class WriteLimit(Protocol):
    """One limit for all agents, counted for each by itself."""

    def spend(self, tx: Transaction, agent_id: str) -> None:
        """Count one write, which is made in this transaction.

        Raises:
            Refused: 429, with `Retry-After`.
        """


def limit(dialect: Dialect, per_minute: int | None) -> WriteLimit:
    """What counts the writes of a network on such a database; None for no limit."""
    return Rates(per_minute) if dialect == "sqlite" or per_minute is None else SharedRates(per_minute)


class Rates:
    """A `WriteLimit` in memory. May be asked from several threads at once.

    It remembers the writes of the last minute and no others, of whomever.
    """

    def __init__(self, per_minute: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._lock = threading.Lock()
        self._writers: deque[str] = deque()
        """Who wrote, in the order of the writes."""
        self._moments: dict[str, deque[float]] = {}
        """When each of them did."""

    def __len__(self) -> int:
        """How many writes it remembers."""
        return len(self._writers)

    def spend(self, tx: Transaction | None, agent_id: str) -> None:
        """Count one write. It counts whatever becomes of the transaction.

        Raises:
            Refused: 429, with `Retry-After`.
        """
        if self._per_minute is None:
            return
        with self._lock:
            now = self._clock()
            self._forget(now - SECONDS)
            moments = self._moments.setdefault(agent_id, deque())
            if len(moments) >= self._per_minute:
                raise _too_often(moments[0] + SECONDS - now)
            moments.append(now)
            self._writers.append(agent_id)

    def _forget(self, moment: float) -> None:
        """Forget what was written up to a moment."""
        while self._writers and self._moments[self._writers[0]][0] <= moment:
            agent_id = self._writers.popleft()
            moments = self._moments[agent_id]
            moments.popleft()
            if not moments:
                del self._moments[agent_id]


class SharedRates:
    """A `WriteLimit` in rows of a PostgreSQL database, one for each agent: the moments of its last writes.

    One statement counts, and the row is locked until the write is committed or undone. So several servers never allow
    more together, and a write that was undone does not count.
    """

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute

    def spend(self, tx: Transaction, agent_id: str) -> None:
        """Count one write.

        Raises:
            Refused: 429, with `Retry-After`.
        """
        most, window = self._per_minute, int(SECONDS * 1000)
        if tx.execute(_SPEND, (agent_id, most, most, most, window)) == 1:
            return
        row = tx.one(_LEFT, (most, window, agent_id))
        raise _too_often((row["milliseconds"] if row else 0) / 1000)


def _too_often(seconds: float) -> Refused:
    whole = max(1, math.ceil(seconds))
    told = f"Too many writes: try again in {whole} s"
    return Refused(TOO_OFTEN, told, {"Retry-After": str(whole)}, why="rate_limit")
