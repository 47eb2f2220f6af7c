"""What is to be sent, on disk: one row for each message, and the few changes that a row can see.

trunkline bridge outbox    uses `Rows` by itself: `unsettled`, `retry`, `drop`
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable
from typing import Any

from trunkline.base import jsontext
from trunkline.base.values import Value
from trunkline.chat.delivery.database import FRESH, STALE
from trunkline.chat.delivery.states import OPEN, UNSETTLED, Cause, MessageState, after
from trunkline.chat.delivery.store import DAY_SECONDS, ChatStore, blob, unblob
from trunkline.chat.platform import Button, FileType

#: For how long a row stays after its message was sent. Nobody needs it; it helps to find out what happened.
SENT_DAYS = 7

#: For how long one stays that was not sent, or perhaps: after that nobody wants it any more.
UNSETTLED_DAYS = 90

#: How often to look for rows to remove, while there are new ones.
PRUNE_SECONDS = DAY_SECONDS

#: Enough of a platform's complaint to act on.
PROBLEM_CHARS = 500

_COLUMNS = "key, platform, chat, token, body, shown, reply_to, state, message, renewed, problem, created"
# The first term is that of the indexes, which are not used without it.
_LOST = "state <> 'sent' AND state IN ('failed', 'unknown')"


class TextBody(Value):
    """A message of text. The last code fence may be open: it is closed where it is shown."""

    text: str
    buttons: tuple[Button, ...] = ()


class FileBody(Value):
    """A message that is a file."""

    path: str
    type: FileType
    name: str


Body = TextBody | FileBody


class OutboxRow(Value):
    """A message that is to be sent, or was."""

    id: int
    """For people and for `Rows.retry`. Messages of one chat are sent in this order."""
    platform: str
    chat: str
    token: str
    """What tells the platform that it is this one, however often it is sent."""
    body: Body
    """What is to be shown in the end."""
    shown: Body | None
    """What the platform has, or may have; None: nothing."""
    reply_to: str | None
    state: MessageState
    message: str | None
    """What the platform calls it."""
    renewed: bool
    """Whether it was sent anew, because the first one could not be changed."""
    problem: str
    """What the platform said last, if it complained."""
    created: float

    @property
    def summary(self) -> str:
        """What it is, in one short line."""
        text = self.body.text if isinstance(self.body, TextBody) else f"[{self.body.type}] {self.body.name}"
        line = " ".join(text.split())
        return line if len(line) <= 60 else f"{line[:59]}…"


class Rows:
    """The rows of a `ChatStore`, of all platforms."""

    def __init__(self, store: ChatStore) -> None:
        self.store = store
        self._pruned = time.time()

    def add(self, platform: str, chat: str, body: Body, reply_to: str | None = None) -> OutboxRow:
        """A new message, `pending`."""
        now, token = time.time(), secrets.token_hex(16)
        if now - self._pruned >= PRUNE_SECONDS:
            self.prune()
        added = self.store.execute(
            "INSERT INTO outbox (platform, chat, token, body, reply_to, state, created, changed)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING key",
            blob(platform), blob(chat), token, _dumped(body), None if reply_to is None else blob(reply_to),
            MessageState.PENDING.value, now, now,
        ).fetchall()  # fmt: skip
        return OutboxRow(
            int(added[0][0]),
            platform,
            chat,
            token,
            body,
            None,
            reply_to,
            MessageState.PENDING,
            None,
            False,
            "",
            now,
        )

    def save(self, row: OutboxRow) -> None:
        """Keep a row as it is now."""
        self.store.execute(
            "UPDATE outbox SET token = ?, body = ?, shown = ?, state = ?, message = ?, renewed = ?, problem = ?,"
            " changed = ? WHERE key = ?",
            row.token, _dumped(row.body), None if row.shown is None else _dumped(row.shown), row.state.value,
            None if row.message is None else blob(row.message), int(row.renewed),
            jsontext.whole(row.problem).replace("\0", " ")[:PROBLEM_CHARS], time.time(), row.id,
        )  # fmt: skip

    def unfinished(self, platform: str) -> list[OutboxRow]:
        """What is left to do, in order: those that are open, and those that show an old text."""
        rows = self._select("platform = ? AND state IN (?, ?)", blob(platform), *sorted(state.value for state in OPEN))
        stale = STALE[self.store.database.dialect]
        rows += self._select(f"platform = ? AND state = 'sent' AND {stale}", blob(platform))
        return sorted(rows, key=lambda row: row.id)

    def unsettled(self, platform: str | None = None, chat: str | None = None) -> list[OutboxRow]:
        """What failed, and what may have failed, oldest first; of one platform or of all, of one chat or of all."""
        given = {"platform": platform, "chat": chat}
        wanted = {column: blob(value) for column, value in given.items() if value is not None}
        return self._select(" AND ".join([*(f"{column} = ?" for column in wanted), _LOST]), *wanted.values())

    def has_unsettled(self, platform: str) -> bool:
        """Whether there is any of them."""
        found = self.store.execute(
            f"SELECT EXISTS (SELECT 1 FROM outbox WHERE platform = ? AND {_LOST})",  # noqa: S608
            blob(platform),
        )
        return bool(found.fetchall()[0][0])

    def untold(self, platform: str, chat: str) -> list[int]:
        """The ids of those that their chat was not told of."""
        found = self.store.execute(
            f"SELECT key FROM outbox WHERE platform = ? AND chat = ? AND told = 0 AND {_LOST}",  # noqa: S608
            blob(platform), blob(chat),
        )  # fmt: skip
        return [key for (key,) in found.fetchall()]

    def tell(self, ids: Iterable[int], *, told: bool = True) -> None:
        """Their chat was told of them; or was not, after all."""
        with self.store.together():
            for id in ids:
                self.store.execute("UPDATE outbox SET told = ? WHERE key = ?", int(told), id)

    def retry(self, id: int) -> OutboxRow | None:
        """Have a failed or unknown message tried again; an unknown one may then appear twice. None: there is no such.

        A bridge that runs takes it up within seconds, one that does not when it starts.
        """
        row = self._unsettled(id)
        if row is None:
            return None
        if row.message is not None:
            # It is there, and only its last text is missing.
            again = row.replace(state=after(row.state, Cause.RESUMED))
        else:
            again = row.replace(state=after(row.state, Cause.RETRIED), shown=None)
        self.save(again)
        return again

    def drop(self, id: int) -> OutboxRow | None:
        """Forget a failed or unknown message. None: there is no such."""
        row = self._unsettled(id)
        if row is not None:
            self.forget(row)
        return row

    def forget(self, row: OutboxRow) -> None:
        """Remove a row."""
        self.store.execute("DELETE FROM outbox WHERE key = ?", row.id)

    def prune(self) -> None:
        """Remove what nobody will ask for."""
        now = self._pruned = time.time()
        self.store.execute(
            f"DELETE FROM outbox WHERE changed < ? AND state = 'sent' AND {FRESH[self.store.database.dialect]}",  # noqa: S608
            now - SENT_DAYS * DAY_SECONDS,
        )
        self.store.execute(
            f"DELETE FROM outbox WHERE changed < ? AND {_LOST}",  # noqa: S608
            now - UNSETTLED_DAYS * DAY_SECONDS,
        )

    def version(self) -> int:
        """A number that changes when another process changes the database."""
        return self.store.database.version()

    def _unsettled(self, id: int) -> OutboxRow | None:
        return next((row for row in self._select("key = ?", id) if row.state in UNSETTLED), None)

    def _select(self, condition: str, *parameters: object) -> list[OutboxRow]:
        # The condition is one of this file's own.
        found = self.store.execute(
            f"SELECT {_COLUMNS} FROM outbox WHERE {condition} ORDER BY key",  # noqa: S608
            *parameters,
        )
        return [_row(columns) for columns in found.fetchall()]


def _row(columns: tuple[Any, ...]) -> OutboxRow:
    key, platform, chat, token, body, shown, reply_to, state, message, renewed, problem, created = columns
    return OutboxRow(
        key, unblob(platform), unblob(chat), token, _loaded(body), None if shown is None else _loaded(shown),
        None if reply_to is None else unblob(reply_to), MessageState(state),
        None if message is None else unblob(message), bool(renewed), problem, created,
    )  # fmt: skip


def _dumped(body: Body) -> bytes:
    if isinstance(body, FileBody):
        return jsontext.dumps({"path": body.path, "type": body.type, "name": body.name})
    return jsontext.dumps({"text": body.text, "buttons": [[button.label, button.data] for button in body.buttons]})


def _loaded(content: bytes) -> Body:
    known = jsontext.loads(content)
    if "path" in known:
        return FileBody(known["path"], known["type"], known["name"])
    return TextBody(known["text"], tuple(Button(label, data) for label, data in known["buttons"]))
