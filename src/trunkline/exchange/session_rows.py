"""The rows of sessions: what is known about each without waking it."""

from __future__ import annotations

from collections.abc import Sequence

from trunkline.base.values import Value
from trunkline.exchange import tally
from trunkline.store.database import Database, Row, Transaction

#: The most sessions in one list.
MOST_LISTED = 1000


class SessionRow(Value):
    """One session in a list. Times are in milliseconds since 1970."""

    id: str
    agent: str
    workspace: str
    by_person: str
    created_at: int
    updated_at: int
    passing: int = 0
    """Whether it is there for one request only, and nobody wants it after a restart."""


class SessionRows:
    """The rows."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, session_id: str) -> SessionRow | None:
        """The session with that id."""
        row = await self._database.read(lambda tx: tx.one("SELECT * FROM session WHERE id = ?", (session_id,)))
        return None if row is None else SessionRow(**row)

    async def list(self, agent: str | None, limit: int, before: str | None) -> list[SessionRow]:
        """Sessions, newest first; with `before`, those older than that one."""

        def read(tx: Transaction) -> list[Row]:
            where, values = ["1 = 1"], []
            if agent is not None:
                where.append("agent = ?")
                values.append(agent)
            if before is not None:
                where.append("(created_at, id) < (SELECT created_at, id FROM session WHERE id = ?)")
                values.append(before)
            sql = f"SELECT * FROM session WHERE {' AND '.join(where)} ORDER BY created_at DESC, id DESC LIMIT ?"
            return tx.all(sql, (*values, min(limit, MOST_LISTED)))

        return [SessionRow(**row) for row in await self._database.read(read)]

    async def passing(self) -> Sequence[str]:
        """Those that are there for one request only."""
        sql = "SELECT id FROM session WHERE passing = 1"
        return [str(row["id"]) for row in await self._database.read(lambda tx: tx.all(sql))]

    async def insert(self, row: SessionRow, turns: int = 0) -> None:
        """One more, which begins with so many turns of another."""

        def write(tx: Transaction) -> None:
            # Later than all others, also within a millisecond and after the clock was put back: lists go by it.
            newest = (tx.one("SELECT MAX(created_at) AS newest FROM session") or {}).get("newest")
            made = row.replace(created_at=max(row.created_at, int(newest or 0) + 1))
            values = tuple(getattr(made, name) for name in made.__fields__)
            sql = f"INSERT INTO session ({', '.join(made.__fields__)}) VALUES ({', '.join('?' * len(values))})"
            tx.execute(sql, values)
            tally.opened(tx, row.id, turns)

        await self._database.write(write)

    async def delete(self, session_id: str) -> None:
        """Remove a session and everything that belongs to it."""
        await self._database.write(lambda tx: tx.execute("DELETE FROM session WHERE id = ?", (session_id,)))
