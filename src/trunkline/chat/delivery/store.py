"""What the bridge must remember: what was received, which session a chat has, and what is to be sent.

One SQLite database, private to its owner. Each method is one transaction, and on the disk when it returns
(`synchronous=FULL`): a power cut takes back nothing that somebody was told. `together` makes one of several.

Other processes may look into the database while a bridge runs, and ask for a message to be sent again. That no two
bridges serve one platform is what `claim` is for.

The tables for what is to be sent are used by `rows`.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from trunkline.base import jsontext, paths
from trunkline.base.values import Value
from trunkline.chat.platform import Inbound, InboundFile
from trunkline.core.faults import ConfigError
from trunkline.store import locks
from trunkline.store.explaining import explained
from trunkline.store.private import open_private

#: For how long a message that is delivered again is recognised. Platforms deliver again what is a day or a few old.
DEDUP_DAYS = 30

#: How often old rows are looked for, in messages received: seldom enough to cost nothing.
PRUNE_EVERY = 1000

#: How long to wait for another process's transaction, which takes milliseconds.
BUSY_SECONDS = 5.0

DAY_SECONDS = 24 * 60 * 60

#: How a message ends that is for the bridge itself: a command, a press. It is none that could be asked again.
FOR_THE_BRIDGE = "command"

_WAITING, _RUNNING = "waiting", "running"
#: What nobody will ask for again: only that it was here is kept.
_FORGOTTEN = frozenset({"success", "refused"})

# Ids and texts are blobs: SQLite's text cannot hold lone surrogates. Keys of the outbox are never used twice
# (`AUTOINCREMENT`): they are the order of delivery, and what a person names a message by.
MIGRATIONS = (
    (
        """
        CREATE TABLE notes (
            key INTEGER PRIMARY KEY,
            platform BLOB NOT NULL,
            id BLOB NOT NULL,
            chat BLOB NOT NULL,
            item BLOB,
            state TEXT NOT NULL,
            noted REAL NOT NULL,
            UNIQUE (platform, id)
        )
        """,
        "CREATE INDEX notes_open ON notes (platform, state) WHERE state IN ('waiting', 'running')",
        "CREATE INDEX notes_noted ON notes (noted)",
        """
        CREATE TABLE conversations (
            platform BLOB NOT NULL,
            chat BLOB NOT NULL,
            kept BLOB NOT NULL,
            PRIMARY KEY (platform, chat)
        ) WITHOUT ROWID
        """,
        """
        CREATE TABLE outbox (
            key INTEGER PRIMARY KEY AUTOINCREMENT,
            platform BLOB NOT NULL,
            chat BLOB NOT NULL,
            token TEXT NOT NULL,
            body BLOB NOT NULL,
            shown BLOB,
            reply_to BLOB,
            state TEXT NOT NULL,
            message BLOB,
            renewed INTEGER NOT NULL DEFAULT 0,
            problem TEXT NOT NULL DEFAULT '',
            created REAL NOT NULL,
            changed REAL NOT NULL
        )
        """,
        "CREATE INDEX outbox_unsent ON outbox (platform, state) WHERE state <> 'sent'",
        "CREATE INDEX outbox_stale ON outbox (platform) WHERE state = 'sent' AND shown IS NOT body",
        "CREATE INDEX outbox_changed ON outbox (changed)",
    ),
    (
        "ALTER TABLE outbox ADD COLUMN told INTEGER NOT NULL DEFAULT 0",
        "CREATE INDEX outbox_untold ON outbox (platform, chat) WHERE state <> 'sent' AND told = 0",
    ),
)


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


#: What it is to people.
_WHAT = "chat database"


class ChatStore:
    """The bridge's memory. Belongs to the thread that made it. Close it when done."""

    def __init__(self, path: str | None = None) -> None:
        """Open the database, or make it. Without a path it is `chat.db` in the state directory.

        Raises:
            ConfigError: it cannot be opened, or a newer version made it.
        """
        self._claims: dict[str, int] = {}
        self._lost: list[Callable[[], None]] = []
        self._after: list[Callable[[], None]] | None = None
        self._since_pruned = 0
        self.path = os.path.abspath(path or os.path.join(paths.state_dir(), "chat.db"))
        self.connection = open_private(self.path, _WHAT, MIGRATIONS, busy_seconds=BUSY_SECONDS)
        self._prune()

    def note(self, platform: str, item: Inbound) -> Note | None:
        """Remember what somebody wrote. None: it was here before, also before a restart."""
        self._since_pruned += 1
        if self._since_pruned >= PRUNE_EVERY:
            self._prune()
        added = self.execute(
            "INSERT INTO notes (platform, id, chat, item, state, noted) VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (platform, id) DO NOTHING",
            blob(platform), blob(item.id), blob(item.chat), _dumped(item), _WAITING, time.time(),
        )  # fmt: skip
        return Note(int(added.lastrowid or 0), platform, item) if added.rowcount else None

    def begin(self, note: Note) -> None:
        """Its turn begins: from now on it is never run by itself again."""
        self.execute("UPDATE notes SET state = ? WHERE key = ?", _RUNNING, note.id)

    def end(self, note: Note, outcome: str) -> None:
        """Its turn is over: `success`, `error`, `cancelled` or `refused`. What was answered must be posted before, or
        in the same `together`."""
        if outcome in (_WAITING, _RUNNING):
            raise ValueError(f"`{outcome}` is not an outcome")
        self.execute(
            "UPDATE notes SET state = ?, item = CASE WHEN ? THEN NULL ELSE item END WHERE key = ?",
            outcome, outcome in _FORGOTTEN, note.id,
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
        self.execute("BEGIN IMMEDIATE")
        after: list[Callable[[], None]] = []
        lost: list[Callable[[], None]] = []
        self._after, self._lost = after, lost
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
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
            ConfigError: another process does.
        """
        if platform in self._claims:
            return
        path = f"{self.path}-{blob(platform).hex()}.lock"
        with self._explained():
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, locks.PRIVATE_FILE)
        if locks.lock(fd):
            self._claims[platform] = fd
            return
        pid = locks.holder(fd)
        os.close(fd)
        raise ConfigError(
            f"Another bridge serves `{platform}` from `{self.path}`{f' (process {pid})' if pid else ''}.",
            hint="Stop it first, or give this one a state directory of its own (`TRUNKLINE_HOME`).",
        )

    def execute(self, statement: str, *parameters: object) -> sqlite3.Cursor:
        """Run one statement; on its own it is a transaction.

        Raises:
            ConfigError: the database cannot be used.
        """
        with self._explained():
            return self.connection.execute(statement, parameters)

    def close(self) -> None:
        """Let go of the database and of the claims. May be called again."""
        self.connection.close()
        while self._claims:
            os.close(self._claims.popitem()[1])

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

    def _explained(self) -> AbstractContextManager[None]:
        return explained(_WHAT, self.path)


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
