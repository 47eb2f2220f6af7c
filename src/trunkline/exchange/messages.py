"""Messages that were accepted but not started yet: what a client was promised outlives the process.

Also recognizes repeated messages: the same `msg_id` twice is one message.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence

from trunkline.base import jsontext
from trunkline.base.values import Value
from trunkline.core.events import Envelope, Gap, Steered, StopAsked, TurnStarted, UserMessage
from trunkline.core.ids import new_id
from trunkline.store.database import Database, Row, Transaction

#: How long a `msg_id` is remembered: longer than any client retries.
KEEP_MS = 7 * 24 * 3_600_000
#: The most messages that are forgotten when one is accepted: more than come in, and too few for anybody to notice.
FORGOTTEN_AT_ONCE = 100
_FORGET = (
    "DELETE FROM message WHERE number IN "
    "(SELECT number FROM message WHERE state = 'begun' AND created_at < ? ORDER BY created_at LIMIT ?)"
)


class QueuedMessage(Value):
    """A message that is waiting to be started, or has been."""

    number: int
    turn: int | None
    message: UserMessage
    seq: int
    """The last event in the session's log when it was accepted: its own come after that."""
    digest: str
    """Of what it says; empty: it is not known any more."""
    waits: bool = True
    """Whether it has not begun, as far as its row says."""

    def says(self, message: UserMessage) -> bool:
        """Whether it is that message, and not another one with the same id."""
        return self.digest in ("", digest(message))


class Messages:
    """The rows."""

    def __init__(self, database: Database, clock: Callable[[], int]) -> None:
        self._database = database
        self._clock = clock

    async def find(self, session: str, msg_id: str) -> QueuedMessage | None:
        """The message with that id, if it was accepted before."""
        sql = "SELECT * FROM message WHERE session = ? AND msg_id = ?"
        row = await self._database.read(lambda tx: tx.one(sql, (session, msg_id)))
        return None if row is None else _queued(row)

    async def take(self, session: str, message: UserMessage, seq: int) -> QueuedMessage:
        """Keep a message until its turn has started, and note that its session was used. Once this returns, it is not
        lost. `seq`: the log's last event.

        Raises:
            Conflict: one with that id was accepted before, or there is no such session.
        """
        now = self._clock()
        whole = message if message.id else message.replace(id=new_id())
        values = (
            session,
            whole.id,
            whole.text,
            jsontext.dumps(list(whole.files)).decode(),
            whole.sender or "",
            seq,
            now,
            digest(whole),
        )

        def write(tx: Transaction) -> QueuedMessage:
            tx.execute(_FORGET, (now - KEEP_MS, FORGOTTEN_AT_ONCE))
            tx.execute(
                "INSERT INTO message (session, msg_id, text, files, by_person, seq, created_at, digest, state) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'queued')",
                values,
            )
            tx.execute("UPDATE session SET updated_at = ? WHERE id = ?", (now, session))
            row = tx.one("SELECT * FROM message WHERE session = ? AND msg_id = ?", (session, whole.id))
            return _queued(row or {})

        return await self._database.write(write)

    async def placed(self, number: int, turn: int) -> bool:
        """It will be answered in that turn; False: it was forgotten or has begun meanwhile."""
        sql = "UPDATE message SET turn = ? WHERE number = ? AND state = 'queued'"
        return await self._database.write(lambda tx: tx.execute(sql, (turn, number))) > 0

    async def began(self, session: str, turn: int, message: UserMessage) -> None:
        """A message is being answered: it is in the log."""
        await self._database.write(lambda tx: begun(tx, session, turn, message))

    async def forget(self, number: int) -> bool:
        """It was not accepted after all: sending it again counts as the first time. False: its session has a turn for
        it. It may have been taken in by another node, which has the session now."""
        sql = "DELETE FROM message WHERE number = ? AND turn IS NULL AND state = 'queued'"
        return await self._database.write(lambda tx: tx.execute(sql, (number,))) > 0

    async def waiting(self, session: str) -> list[QueuedMessage]:
        """The messages that were accepted but not started, in order."""
        sql = "SELECT * FROM message WHERE session = ? AND state = 'queued' ORDER BY number"
        return [_queued(row) for row in await self._database.read(lambda tx: tx.all(sql, (session,)))]

    async def sessions_waiting(self) -> list[str]:
        """The sessions with waiting messages."""
        sql = "SELECT DISTINCT session FROM message WHERE state = 'queued' ORDER BY session"
        return [str(row["session"]) for row in await self._database.read(lambda tx: tx.all(sql))]


def begun(tx: Transaction, session: str, turn: int, message: UserMessage) -> None:
    """A message is being answered: it is in the log."""
    if message.id is not None:
        sql = "UPDATE message SET state = 'begun', turn = ?, text = '' WHERE session = ? AND msg_id = ?"
        tx.execute(sql, (turn, session, message.id))


def digest(message: UserMessage) -> str:
    """What tells messages apart that have the same id."""
    whole = storable(message)
    return hashlib.sha256(jsontext.dumps([whole.text, list(whole.files)])).hexdigest()


def storable(message: UserMessage) -> UserMessage:
    """The message in a form that a database and a log can store: unpaired surrogates from JSON are replaced."""
    return message.replace(
        text=jsontext.whole(message.text),
        files=tuple(map(jsontext.whole, message.files)),
        id=None if message.id is None else jsontext.whole(message.id),
        sender=None if message.sender is None else jsontext.whole(message.sender),
    )


def begun_in(items: Iterable[Envelope | Gap], queued: Sequence[QueuedMessage]) -> list[tuple[int, UserMessage]]:
    """Messages that were begun or withdrawn according to what is in the log, and whose rows do not say so, with their
    turns. Of a withdrawal only the log knows before the message's place has come: a row that knew first would take away
    a message whose session is another node's by then.
    """
    wanted = {each.message.id: each for each in queued}
    found: list[tuple[int, UserMessage]] = []
    for item in items:
        match item:
            case Envelope(turn=turn, event=TurnStarted(message=message) | Steered(message=message)):
                found += [(turn, message)] if message.id in wanted else []
            case Envelope(event=StopAsked(dropped=ids)):
                found += [(wanted[id].turn or 0, wanted[id].message) for id in ids if id in wanted]
    return found


def _queued(row: Row) -> QueuedMessage:
    files = tuple(jsontext.loads(str(row["files"]).encode()))
    turn = None if row["turn"] is None else int(row["turn"])
    message = UserMessage(str(row["text"]), files, str(row["msg_id"]), str(row["by_person"]) or None)
    waits = row["state"] == "queued"
    return QueuedMessage(int(row["number"]), turn, message, int(row["seq"]), str(row["digest"]), waits)
