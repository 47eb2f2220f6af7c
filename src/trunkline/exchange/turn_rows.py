"""The rows of turns: what was asked, what was answered and how it ended, to be found across sessions.

The log of a session has all of it, and more. A row is written when its turn has ended, with what is counted of it. Of a
session whose log may have turns without a row, `session.unindexed` says so until `exchange.turn_indexing` has seen to
it: of those from before there were rows, of forks, and when a process died or did not hear all of a turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trunkline.base import jsontext
from trunkline.base.plain_words import phrases, plain_words
from trunkline.base.values import Value
from trunkline.store.database import Database, Transaction

#: The most turns in one list.
MOST_TURNS = 200


class TurnRow(Value):
    """One turn. Times are in milliseconds since 1970; `message` and `answer` are shortened."""

    number: int
    """Its place in lists: turns that began later have a higher one."""
    session: str
    turn: int
    seq: int
    """The number of its first event."""
    agent: str
    by_person: str
    began_at: int
    ended_at: int
    outcome: str
    cause: str
    """Why it ended as it did."""
    message: str
    answer: str


class TurnQuery(Value):
    """Which turns are wanted: those of which all of this is true."""

    words: str = ""
    """Each of them begins a word of the message or of the answer."""
    agent: str | None = None
    outcome: str | None = None
    person: str | None = None
    before: int | None = None
    """Only those whose number is lower."""


class UnindexedSession(Value):
    """A session whose log may have turns without a row."""

    session: str
    agent: str
    mark: int
    """How often that was noted."""


_FIELDS = TurnRow.__fields__
_COLUMNS = ", ".join(f"turn.{name}" for name in _FIELDS)


class TurnRows:
    """The rows."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, wanted: TurnQuery, limit: int) -> list[TurnRow]:
        """Turns, the newest first."""
        rows = await self._database.read(lambda tx: tx.all(*_query(tx, wanted, min(limit, MOST_TURNS))))
        return [TurnRow(**row) for row in rows]

    async def failed(self, since: int, limit: int) -> list[TurnRow]:
        """Turns that have failed since then, and after which their session was not used again; the newest first."""
        sql = (
            f"SELECT {_COLUMNS} FROM turn WHERE outcome IN ('error', 'unknown') AND ended_at >= ? AND NOT EXISTS "
            "(SELECT 1 FROM turn AS later WHERE later.session = turn.session AND later.turn > turn.turn) "
            "ORDER BY ended_at DESC LIMIT ?"
        )
        return [TurnRow(**row) for row in await self._database.read(lambda tx: tx.all(sql, (since, limit)))]

    async def exists(self, number: int) -> bool:
        """Whether there is a turn with that number."""
        sql = "SELECT 1 AS found FROM turn WHERE number = ?"
        return await self._database.read(lambda tx: tx.one(sql, (number,))) is not None

    async def unindexed(self, limit: int) -> list[UnindexedSession]:
        """Sessions whose logs may have turns without a row, the newest first."""
        sql = (
            "SELECT id AS session, agent, unindexed AS mark FROM session WHERE unindexed > 0 AND passing = 0 "
            "ORDER BY created_at DESC LIMIT ?"
        )
        return [UnindexedSession(**row) for row in await self._database.read(lambda tx: tx.all(sql, (limit,)))]

    async def known(self, session: str) -> set[int]:
        """The turns of a session that have a row."""
        sql = "SELECT turn FROM turn WHERE session = ?"
        return {int(row["turn"]) for row in await self._database.read(lambda tx: tx.all(sql, (session,)))}

    async def add(self, rows: Sequence[TurnRow]) -> None:
        """Write these rows; those of a session that is gone are left out."""

        def write(tx: Transaction) -> None:
            for row in rows:
                put(tx, row)

        await self._database.write(write)

    async def indexed(self, found: UnindexedSession) -> None:
        """All turns of a session have a row, unless it was noted again meanwhile that some may have none."""
        sql = "UPDATE session SET unindexed = 0 WHERE id = ? AND unindexed = ?"
        await self._database.write(lambda tx: tx.execute(sql, (found.session, found.mark)))


def held(text: str) -> str:
    """A text as every database can hold it: without unpaired surrogates, and without the character 0."""
    return jsontext.whole(text).replace("\0", "\ufffd")


def put(tx: Transaction, row: TurnRow) -> None:
    """Write the row of a turn, in the place of an earlier one; nothing for a session that is gone."""
    changed = ", ".join(f"{name} = excluded.{name}" for name in (*_FIELDS, "words") if name not in _KEY)
    sql = (
        f"INSERT INTO turn ({', '.join(_FIELDS)}, words) "
        f"SELECT {_FREE}, {', '.join('?' * len(_FIELDS))} WHERE EXISTS (SELECT 1 FROM session WHERE id = ?) "
        f"ON CONFLICT (session, turn) DO UPDATE SET {changed}"
    )
    words = " ".join(plain_words(f"{row.message}\n{row.answer}"))
    values = [getattr(row, name) for name in _FIELDS if name != "number"]
    tx.execute(sql, (*[row.number] * 3, *values, words, row.session))


_KEY = ("number", "session", "turn")
#: That number if it is free, else the next that is: forks have turns of the same moment.
_FREE = (
    "(SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM turn WHERE number = ?) THEN ? ELSE "
    "(SELECT MIN(number) + 1 FROM turn AS taken WHERE number >= ? AND NOT EXISTS "
    "(SELECT 1 FROM turn WHERE turn.number = taken.number + 1)) END)"
)


def mark(tx: Transaction, session: str) -> None:
    """Note that the log of a session may have turns without a row."""
    tx.execute("UPDATE session SET unindexed = unindexed + 1 WHERE id = ?", (session,))


def having(tx: Transaction, words: str) -> tuple[str, list[str]]:
    """A condition on a `turn` that it has these words, and its parameters; an empty one if nothing is looked for. What
    has no word in it, no turn has."""
    terms = phrases(words)
    if not terms:
        return ("1 = 0" if words.strip() else ""), []
    if tx.dialect == "sqlite":
        # With the sign, the numbers are not looked up one by one and sorted: the index of another condition is read
        # from the newest on, no further than is wanted.
        return "+turn.number IN (SELECT rowid FROM turn_text WHERE turn_text MATCH ?)", [_match(terms)]
    one = "(NULLIF(phraseto_tsquery('simple', ?)::text, '') || ':*')::tsquery"
    query = " && ".join([one] * len(terms))
    return f"to_tsvector('simple', turn.words) @@ ({query})", [" ".join(phrase) for phrase in terms]


def _match(terms: Sequence[list[str]]) -> str:
    return " AND ".join(f'"{" ".join(phrase)}"*' for phrase in terms)


def _query(tx: Transaction, wanted: TurnQuery, limit: int) -> tuple[str, Sequence[Any]]:
    compared = {"agent": wanted.agent, "outcome": wanted.outcome, "by_person": wanted.person}
    filters: dict[str, Any] = {f"turn.{name} = ?": held(value) for name, value in compared.items() if value is not None}
    tables, number = "turn", "turn.number"
    found, values = having(tx, wanted.words)
    if values and not filters and tx.dialect == "sqlite":
        # The index of words has them by number, too.
        tables, number = "turn_text CROSS JOIN turn ON turn.number = turn_text.rowid", "turn_text.rowid"
        found = "turn_text MATCH ?"
    if wanted.before is not None:
        filters[f"{number} < ?"] = wanted.before
    where = " AND ".join(filter(None, [found, *filters])) or "1 = 1"
    sql = f"SELECT {_COLUMNS} FROM {tables} WHERE {where} ORDER BY {number} DESC LIMIT ?"
    return sql, (*values, *filters.values(), limit)
