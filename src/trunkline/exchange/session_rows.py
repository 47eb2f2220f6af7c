"""The rows of sessions: what is known about each without waking it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from trunkline.base.values import Value
from trunkline.exchange import tally
from trunkline.exchange.row_writer import Work
from trunkline.exchange.turn_rows import having, held
from trunkline.store.database import Database, Row, Transaction

#: The most sessions in one list.
MOST_LISTED = 1000
#: Characters of a session's title.
LONGEST_TITLE = 200


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


class FoundSession(SessionRow):
    """The same, with what its turns tell of it."""

    title: str = ""
    """The beginning of its first message that was answered."""
    last_outcome: str | None = None
    """How its last turn ended; None if none has."""


class SessionQuery(Value):
    """Which sessions are wanted: those of which all of this is true."""

    words: str = ""
    """One of its turns has all of them."""
    agent: str | None = None
    person: str | None = None
    """Who has begun it."""
    outcome: str | None = None
    """How its last turn ended."""


_COLUMNS = ", ".join(SessionRow.__fields__)
_TITLE = (
    f"(SELECT substr(message, 1, {LONGEST_TITLE}) FROM turn WHERE turn.session = session.id ORDER BY turn.turn LIMIT 1)"
)
_LAST_OUTCOME = "(SELECT outcome FROM turn WHERE turn.session = session.id ORDER BY turn.turn DESC LIMIT 1)"


class BornRow:
    """A row that is being inserted."""

    def __init__(self, insert: Work) -> None:
        self._insert = insert
        self._trying = asyncio.ensure_future(insert())
        self._heard = False

    @property
    def is_written(self) -> bool:
        """Whether it is known to be there."""
        return self._trying.done() and self._trying.exception() is None

    def check(self) -> None:
        """See that the latest try has not failed, as far as is known.

        Raises:
            DatabaseGone: it has.
        """
        if self._trying.done():
            self._trying.result()

    async def written(self) -> None:
        """Wait for the first try; called again, try again."""
        if self._heard:
            self._trying = asyncio.ensure_future(self._insert())
        self._heard = True
        await asyncio.shield(self._trying)

    async def settled(self) -> None:
        """Wait until nothing more comes of it, whatever that is."""
        with suppress(Exception):
            await self._trying


class SessionRows:
    """The rows."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, session_id: str) -> SessionRow | None:
        """The session with that id."""
        sql = f"SELECT {_COLUMNS} FROM session WHERE id = ?"
        row = await self._database.read(lambda tx: tx.one(sql, (session_id,)))
        return None if row is None else SessionRow(**row)

    async def find(self, wanted: SessionQuery, limit: int, before: str | None) -> list[FoundSession]:
        """The sessions that somebody looks for, newest first; with `before`, those older than that one."""

        def read(tx: Transaction) -> list[Row]:
            found, words = having(tx, wanted.words)
            if found:
                found = f"EXISTS (SELECT 1 FROM turn WHERE turn.session = session.id AND {found})"
            compared = {
                "session.agent = ?": wanted.agent,
                "session.by_person = ?": wanted.person,
                f"{_LAST_OUTCOME} = ?": wanted.outcome,
                "(created_at, id) < (SELECT created_at, id FROM session WHERE id = ?)": before,
            }
            filters = {condition: held(value) for condition, value in compared.items() if value is not None}
            where = " AND ".join(filter(None, [found, *filters])) or "1 = 1"
            sql = (
                f"SELECT {_COLUMNS}, {_TITLE} AS title, {_LAST_OUTCOME} AS last_outcome FROM session "
                f"WHERE {where} ORDER BY created_at DESC, id DESC LIMIT ?"
            )
            return tx.all(sql, (*words, *filters.values(), min(limit, MOST_LISTED)))

        return [FoundSession(**{**row, "title": row["title"] or ""}) for row in await self._database.read(read)]

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
            # Those turns have no rows of their own yet.
            sql = f"INSERT INTO session ({_COLUMNS}, unindexed) VALUES ({', '.join('?' * len(values))}, ?)"
            tx.execute(sql, (*values, int(turns > 0)))
            tally.opened(tx, row.id, turns)

        await self._database.write(write)

    async def begin(self, row: SessionRow) -> BornRow:
        """The same for a new session. That of a passing one is only on its way then: nobody wants it after a restart,
        and a wait for the disk would be a wait for the first word."""
        born = BornRow(lambda: self.insert(row))
        # Before anything is made that only its row would tell of.
        await (asyncio.sleep(0) if row.passing else born.written())
        return born

    async def delete(self, session_id: str) -> None:
        """Remove a session and everything that belongs to it."""
        await self._database.write(lambda tx: tx.execute("DELETE FROM session WHERE id = ?", (session_id,)))
