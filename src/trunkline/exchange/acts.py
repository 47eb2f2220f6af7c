"""What people and processes did with a session, apart from what is in its log: who joined and left, which process woke
it, what was made from it. `exchange.explaining` includes it in its account.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from trunkline.base import jsontext
from trunkline.base.values import Value
from trunkline.store.database import Database, Transaction

What = Literal["woken", "let_go", "joined", "left", "forked", "forked_from", "handed_over", "handed_over_from"]

#: Per session. Clients that come and go every second must not fill the disk, and the newest acts matter most.
MOST_KEPT = 1000
#: The longest description of what was done.
LONGEST_DETAIL = 500


class Act(Value):
    """One act. `at` is in milliseconds since 1970; `seq` is the number of the last event at that time."""

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

    def act(self, seq: int, what: What, person: str = "", detail: str = "") -> Act:
        """An act that happens now."""
        return Act(self._clock(), seq, what, jsontext.whole(person), jsontext.whole(detail[:LONGEST_DETAIL]))

    async def add(self, session: str, seq: int, what: What, person: str = "", detail: str = "") -> None:
        """Note an act. Nothing is noted for a session that no longer exists."""
        await self.keep(session, [self.act(seq, what, person, detail)])

    async def keep(self, session: str, acts: Sequence[Act]) -> None:
        """Note several acts, in order. Nothing is noted for a session that no longer exists."""

        def write(tx: Transaction) -> None:
            if tx.one("SELECT id FROM session WHERE id = ?", (session,)) is None:
                return
            sql = "INSERT INTO act (session, at, seq, what, person, detail) VALUES (?, ?, ?, ?, ?, ?)"
            for act in acts:
                tx.execute(sql, (session, act.at, act.seq, act.what, act.person, act.detail))
            oldest = tx.one(
                f"SELECT number FROM act WHERE session = ? ORDER BY number DESC LIMIT 1 OFFSET {MOST_KEPT}", (session,)
            )
            if oldest is not None:
                tx.execute("DELETE FROM act WHERE session = ? AND number <= ?", (session, oldest["number"]))

        await self._database.write(write)

    async def of(self, session: str) -> list[Act]:
        """The acts of a session, oldest first."""
        sql = "SELECT at, seq, what, person, detail FROM act WHERE session = ? ORDER BY number"
        return [Act(**row) for row in await self._database.read(lambda tx: tx.all(sql, (session,)))]
