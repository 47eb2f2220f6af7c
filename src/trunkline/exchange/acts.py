"""What people and processes did with a session, besides what is in its log: who joined and left, which process woke it,
what was made of it. `exchange.explaining` tells it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from trunkline.base.values import Value
from trunkline.store.database import Database, Transaction

What = Literal["woken", "let_go", "joined", "left", "forked", "forked_from", "handed_over", "handed_over_from"]

#: Of one session. Clients that come and go every second must not fill the disk; the newest tell the most.
MOST_KEPT = 1000
#: Of what was done to what.
LONGEST_DETAIL = 500


class Act(Value):
    """One of them. `at` is milliseconds since 1970; `seq` the last event that there was by then."""

    at: int
    seq: int
    what: What
    person: str = ""
    detail: str = ""


class Acts:
    """The rows."""

    def __init__(self, database: Database, clock: Callable[[], int]) -> None:
        self._database = database
        self._clock = clock

    async def add(self, session: str, seq: int, what: What, person: str = "", detail: str = "") -> None:
        """Note one. Of a session that is gone, nothing is noted."""
        values = (session, self._clock(), seq, what, person, detail[:LONGEST_DETAIL])

        def write(tx: Transaction) -> None:
            if tx.one("SELECT id FROM session WHERE id = ?", (session,)) is None:
                return
            tx.execute("INSERT INTO act (session, at, seq, what, person, detail) VALUES (?, ?, ?, ?, ?, ?)", values)
            oldest = tx.one(
                f"SELECT number FROM act WHERE session = ? ORDER BY number DESC LIMIT 1 OFFSET {MOST_KEPT}", (session,)
            )
            if oldest is not None:
                tx.execute("DELETE FROM act WHERE session = ? AND number <= ?", (session, oldest["number"]))

        await self._database.write(write)

    async def of(self, session: str) -> list[Act]:
        """Those of a session, oldest first."""
        sql = "SELECT at, seq, what, person, detail FROM act WHERE session = ? ORDER BY number"
        return [Act(**row) for row in await self._database.read(lambda tx: tx.all(sql, (session,)))]
