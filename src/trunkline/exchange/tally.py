"""Up to which turn each session is counted: a process that dies between the end of a turn and its row loses nothing.

The log knows the ends of turns, and what each used. What is written here goes with the rows that count it, in one
transaction, so that nothing is counted twice either.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence

from trunkline.base import jsontext
from trunkline.base.values import Value
from trunkline.core.events import Envelope, Gap, TurnEnded, TurnStarted
from trunkline.core.faults import Fault
from trunkline.core.usage import Usage
from trunkline.exchange import turn_rows
from trunkline.store.database import Database, Transaction
from trunkline.store.files import FileStore

logger = logging.getLogger(__name__)


class Tally(Value):
    """How far one session is counted."""

    ended: int
    """The last turn that was counted whole."""
    metered: int = 0
    """The turn that was counted in part, by an agent that counts itself."""
    used: Usage = Usage()
    """What was counted of that one,"""
    model: str = ""
    """and for which model last."""


class UncountedTurn(Value):
    """The end of a turn, as the log has it."""

    turn: int
    usage: Usage | None
    sender: str


#: Counts turns that were not counted whole.
Count = Callable[[Tally, Sequence[UncountedTurn]], Awaitable[None]]


class Tallies:
    """The rows."""

    def __init__(self, database: Database, store: FileStore) -> None:
        self._database = database
        self._store = store

    async def uncounted(self) -> list[tuple[str, str]]:
        """The sessions with a turn that began, or was about to, and was not counted whole, each with its agent."""
        sql = "SELECT id, agent FROM session JOIN tally ON session = id WHERE begun > ended ORDER BY id"
        return [(str(row["id"]), str(row["agent"])) for row in await self._database.read(lambda tx: tx.all(sql))]

    async def catch_up(self, session: str, count: Count, turns: int | None = None, *, but: int = 0) -> bool:
        """Have the turns counted that ended in the last process's last moment, as the log has them.

        Args:
            turns: how many there are, if that is known.
            but: the one in progress, which is counted when it ends.

        Returns:
            Whether the log may have a turn without its end.
        """
        so_far = await self._get(session)
        if so_far is None or (turns is not None and so_far.ended >= turns):
            return False
        try:
            found, is_open = await asyncio.to_thread(lambda: _ends(self._store.peek(session).records, so_far.ended))
        except Fault as fault:
            logger.warning("the turns of session %s cannot be counted: %s", session, fault)
            return True
        if found:
            await self._database.write(lambda tx: turn_rows.mark(tx, session))
        await count(so_far, [end for end in found if end.turn != but])
        return is_open

    async def left_open(self, session: str, count: Count) -> bool:
        """The same for a session that nobody has open now."""
        if await self.catch_up(session, count):
            return True
        # A turn that was expected has not begun: the next start need not look for it.
        sql = "UPDATE tally SET begun = ended WHERE session = ?"
        await self._database.write(lambda tx: tx.execute(sql, (session,)))
        return False

    async def _get(self, session: str) -> Tally | None:
        """None: it is older than these rows."""
        sql = "SELECT * FROM tally WHERE session = ?"
        row = await self._database.read(lambda tx: tx.one(sql, (session,)))
        if row is None:
            return None
        used = jsontext.loads(str(row["used"]).encode()) if row["used"] else {}
        model = used.pop("model", "")
        return Tally(int(row["ended"]), int(row["metered"]), Usage(**used), model)


def opened(tx: Transaction, session: str, turns: int) -> None:
    """A session begins, with so many turns that were counted where they were said."""
    sql = "INSERT INTO tally (session, begun, ended, metered, used) VALUES (?, ?, ?, 0, '')"
    tx.execute(sql, (session, turns, turns))


def began(tx: Transaction, session: str, turn: int) -> None:
    """A turn has begun, or is about to."""
    tx.execute("UPDATE tally SET begun = ? WHERE session = ? AND begun < ?", (turn, session, turn))


def spent(tx: Transaction, session: str, turn: int, used: Usage, model: str) -> None:
    """So much of a turn in progress is counted."""
    known = {name: value for name in used.__fields__ if (value := getattr(used, name)) is not None}
    text = jsontext.dumps({**known, "model": model}).decode()
    tx.execute("UPDATE tally SET metered = ?, used = ? WHERE session = ?", (turn, text, session))


def ended(tx: Transaction, session: str, turn: int) -> None:
    """A turn is counted whole."""
    tx.execute("UPDATE tally SET ended = ? WHERE session = ? AND ended < ?", (turn, session, turn))


def _ends(records: Iterable[Envelope | Gap], after: int) -> tuple[list[UncountedTurn], bool]:
    """The turns after that one that have ended, of a log, and whether there is one that has not."""
    senders: dict[int, str] = {}
    found = []
    for record in records:
        if not isinstance(record, Envelope) or record.turn <= after:
            continue
        if isinstance(record.event, TurnStarted):
            senders[record.turn] = record.event.message.sender or ""
        elif isinstance(record.event, TurnEnded):
            found.append(UncountedTurn(record.turn, record.event.usage, senders.pop(record.turn, "")))
    return found, bool(senders)
