"""What the bridge must remember: what was received, which session a chat has, and what is to be sent.

Each method is one transaction, and on the disk when it returns. `together` makes one of several. Where that is, the
`ChatDatabase` says: a file, or a server that several machines share.

The tables for what is to be sent are used by `rows`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from trunkline.base import jsontext
from trunkline.base.values import Value
from trunkline.chat.delivery.database import ChatDatabase, StatementResult
from trunkline.chat.delivery.disk import ChatDisk
from trunkline.chat.platform import Inbound, InboundFile
from trunkline.core.faults import StoreUnavailable

#: For how long a message that is delivered again is recognised. Platforms deliver again what is a day or a few old.
DEDUP_DAYS = 30

#: How often old rows are looked for, in messages received: seldom enough to cost nothing.
PRUNE_EVERY = 1000

DAY_SECONDS = 24 * 60 * 60

#: How a message ends that is for the bridge itself: a command, a press. It is none that could be asked again.
FOR_THE_BRIDGE = "command"

_WAITING, _RUNNING = "waiting", "running"
#: What nobody will ask for again: only that it was here is kept.
_FORGOTTEN = frozenset({"success", "refused"})


class ChatStoreLost(StoreUnavailable):
    """The platform is another machine's to serve, or it is not known what was written: this run of the bridge is over,
    as after a crash."""


class Note(Value):
    """A message that was received and is on disk. `id` is the store's own, and grows."""

    id: int
    platform: str
    inbound: Inbound


class KeptChat(Value):
    """What a chat keeps between messages and restarts. The bridge gives it its meaning."""

    agent: str = ""
    """The agent that was chosen; empty: the one of the settings."""
    session_id: str | None = None
    """The session that goes on."""
    agent_session: str | None = None
    """What the agent itself calls it, where that matters."""
    spec: str = ""
    """What the agent's name stood for when the session began; empty: not known."""
    workspace: str = ""
    """Where the session works; empty: not known."""
    seen: int = 0
    """In a session that goes on without the bridge: its last event of which the chat has everything."""
    turn: int = 0
    """The turn of that event, if it is the chat's; 0: that begins later."""


class ChatStore:
    """The bridge's memory. Belongs to the thread that made it. Close it when done."""

    def __init__(self, path: str | None = None, *, database: ChatDatabase | None = None) -> None:
        """Open the file at `path`, or make it; without one it is `chat.db` in the state directory. Or use another
        `database`, which is closed with the store.

        Raises:
            ConfigError: it cannot be opened, or a newer version made it.
        """
        self._lost: list[Callable[[], None]] = []
        self._after: list[Callable[[], None]] | None = None
        self._since_pruned = 0
        self.database = database or ChatDisk(path)
        self._prune()

    @property
    def path(self) -> str:
        """Where it is, for people."""
        return self.database.where

    def note(self, platform: str, item: Inbound) -> Note | None:
        """Remember what somebody wrote. None: it was here before, also before a restart."""
        self._since_pruned += 1
        if self._since_pruned >= PRUNE_EVERY:
            self._prune()
        added = self.execute(
            "INSERT INTO notes (platform, id, chat, item, state, noted) VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (platform, id) DO NOTHING RETURNING key",
            blob(platform), blob(item.id), blob(item.chat), _dumped(item), _WAITING, time.time(),
        ).fetchall()  # fmt: skip
        return Note(int(added[0][0]), platform, item) if added else None

    def begin(self, note: Note) -> None:
        """Its turn begins: from now on it is never run by itself again."""
        self.execute("UPDATE notes SET state = ? WHERE key = ?", _RUNNING, note.id)

    def end(self, note: Note, outcome: str) -> None:
        """Its turn is over: `success`, `error`, `cancelled` or `refused`. What was answered must be posted before, or
        in the same `together`."""
        if outcome in (_WAITING, _RUNNING):
            raise ValueError(f"`{outcome}` is not an outcome")
        self.execute(
            "UPDATE notes SET state = ?, item = CASE WHEN ? = 1 THEN NULL ELSE item END WHERE key = ?",
            outcome, int(outcome in _FORGOTTEN), note.id,
        )  # fmt: skip

    def waiting(self, platform: str) -> list[Note]:
        """What was noted and never begun, oldest first."""
        return self._notes("platform = ? AND state = ? ORDER BY key", blob(platform), _WAITING)

    def interrupted(self, platform: str) -> list[Note]:
        """What was begun and never ended, oldest first. After a start: turns that a crash cut off."""
        return self._notes("platform = ? AND state = ? ORDER BY key", blob(platform), _RUNNING)

    def failed(self, platform: str, chat: str, id: int) -> Note | None:
        """The message of that id, if it was written in this chat and ended in `error` or `cancelled`: one that can be
        asked again."""
        condition = "key = ? AND platform = ? AND chat = ? AND state IN ('error', 'cancelled')"
        return next(iter(self._notes(condition, id, blob(platform), blob(chat))), None)

    def last_ended(self, platform: str, chat: str) -> int | None:
        """The id of a chat's last message to the agent that has ended, however it did."""
        row = self.execute(
            "SELECT key FROM notes WHERE platform = ? AND chat = ? AND state NOT IN (?, ?, ?)"
            " ORDER BY key DESC LIMIT 1",
            blob(platform), blob(chat), _WAITING, _RUNNING, FOR_THE_BRIDGE,
        ).fetchone()  # fmt: skip
        return None if row is None else int(row[0])

    def conversation(self, platform: str, chat: str) -> KeptChat:
        """What a chat keeps; of a chat that was never seen, the defaults."""
        row = self.execute(
            "SELECT kept FROM conversations WHERE platform = ? AND chat = ?", blob(platform), blob(chat)
        ).fetchone()
        known = jsontext.loads(row[0]) if row else {}
        # What another version kept besides is none of ours.
        return KeptChat(**{field: known[field] for field in KeptChat.__fields__ if field in known})

    def keep(self, platform: str, chat: str, kept: KeptChat) -> None:
        """Remember this of a chat, in place of what was known."""
        content = jsontext.dumps({field: getattr(kept, field) for field in KeptChat.__fields__})
        self.execute(
            "INSERT INTO conversations (platform, chat, kept) VALUES (?, ?, ?)"
            " ON CONFLICT (platform, chat) DO UPDATE SET kept = excluded.kept",
            blob(platform), blob(chat), content,
        )  # fmt: skip

    @contextmanager
    def together(self) -> Iterator[None]:
        """All or nothing: what is done within is on the disk at the end of the block, or not at all.

            with store.together():
                answer.complete()
                store.end(note, "success")

        No `await` within. May be nested; the outermost counts. What failed must not be used any further.

        Raises:
            ConfigError: the disk is full, say.
        """
        if self._after is not None:
            yield
            return
        self.database.begin()
        after: list[Callable[[], None]] = []
        lost: list[Callable[[], None]] = []
        self._after, self._lost = after, lost
        try:
            yield
            self.database.commit()
        except BaseException:
            self.database.rollback()
            # The other way round, so that what was first is as it was in the end.
            for callback in reversed(lost):
                callback()
            raise
        finally:
            self._after = None
        for callback in after:
            callback()

    def when_kept(self, callback: Callable[[], None]) -> None:
        """Call this when what was written is on the disk: at once, or at the end of `together`; never if it fails."""
        if self._after is None:
            callback()
        else:
            self._after.append(callback)

    def when_lost(self, callback: Callable[[], None]) -> None:
        """Call this if what is written in this `together` does not reach the disk, to have all as it was before."""
        self._lost.append(callback)

    def claim(self, platform: str) -> None:
        """Serve a platform from this database, alone, until `close` or the end of the process, however it ends.

        Who has it may claim it again.

        Raises:
            ConfigError: another process of this machine does.
            ChatStoreLost: another machine does.
        """
        self.database.claim(platform)

    def execute(self, statement: str, *parameters: object) -> StatementResult:
        """Run one statement; on its own it is a transaction.

        Raises:
            ConfigError: the database cannot be used.
        """
        return self.database.execute(statement, *parameters)

    def close(self) -> None:
        """Let go of the database and of the claims. May be called again."""
        self.database.close()

    def _notes(self, condition: str, *parameters: object) -> list[Note]:
        # The condition is one of this file's own.
        rows = self.execute(
            f"SELECT key, platform, item FROM notes WHERE item IS NOT NULL AND {condition}",  # noqa: S608
            *parameters,
        )
        return [Note(key, unblob(platform), _loaded(item)) for key, platform, item in rows.fetchall()]

    def _prune(self) -> None:
        self._since_pruned = 0
        self.execute(
            "DELETE FROM notes WHERE noted < ? AND state NOT IN (?, ?)",
            time.time() - DEDUP_DAYS * DAY_SECONDS, _WAITING, _RUNNING,
        )  # fmt: skip


def blob(text: str) -> bytes:
    """A text as the database keeps it."""
    return text.encode("utf-8", "surrogatepass")


def unblob(content: bytes) -> str:
    """The text of a blob."""
    return content.decode("utf-8", "surrogatepass")


def _dumped(item: Inbound) -> bytes:
    plain: dict[str, Any] = {field: getattr(item, field) for field in Inbound.__fields__}
    files = [{field: getattr(file, field) for field in InboundFile.__fields__} for file in item.files]
    return jsontext.dumps(plain | {"files": files})


def _loaded(content: bytes) -> Inbound:
    known = jsontext.loads(content)
    known["files"] = tuple(InboundFile(**file) for file in known["files"])
    # What another version kept besides is none of ours.
    return Inbound(**{field: known[field] for field in Inbound.__fields__ if field in known})
