"""The bridge's memory as a file: one SQLite database, private to its owner.

Each transaction is on the disk when it returns (`synchronous=FULL`): a power cut takes back nothing that somebody was
told. Other processes may look into the database while a bridge runs, and ask for a message to be sent again. That no
two bridges serve one platform is what `claim` is for.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import AbstractContextManager

from trunkline.base import paths
from trunkline.core.faults import ConfigError
from trunkline.store import locks
from trunkline.store.database import Dialect
from trunkline.store.explaining import explained
from trunkline.store.private import open_private

#: How long to wait for another process's transaction, which takes milliseconds.
BUSY_SECONDS = 5.0

#: What it is to people.
_WHAT = "chat database"

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


class ChatDisk:
    """A `ChatDatabase`. Belongs to the thread that made it."""

    dialect: Dialect = "sqlite"
    lost = ""

    def __init__(self, path: str | None = None) -> None:
        """Open the file, or make it. Without a path it is `chat.db` in the state directory.

        Raises:
            ConfigError: it cannot be opened, or a newer version made it.
        """
        self._claims: dict[str, int] = {}
        self.where = os.path.abspath(path or os.path.join(paths.state_dir(), "chat.db"))
        self.connection = open_private(self.where, _WHAT, MIGRATIONS, busy_seconds=BUSY_SECONDS)

    def execute(self, statement: str, *parameters: object) -> sqlite3.Cursor:
        with self._explained():
            return self.connection.execute(statement, parameters)

    def begin(self) -> None:
        self.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self.execute("COMMIT")

    def rollback(self) -> None:
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def claim(self, platform: str) -> None:
        if platform in self._claims:
            return
        name = platform.encode("utf-8", "surrogatepass").hex()
        with self._explained():
            fd = os.open(f"{self.where}-{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, locks.PRIVATE_FILE)
        if locks.lock(fd):
            self._claims[platform] = fd
            return
        pid = locks.holder(fd)
        os.close(fd)
        raise ConfigError(
            f"Another bridge serves `{platform}` from `{self.where}`{f' (process {pid})' if pid else ''}.",
            hint="Stop it first, or give this one a state directory of its own (`TRUNKLINE_HOME`).",
        )

    def version(self) -> int:
        return int(self.execute("PRAGMA data_version").fetchone()[0])

    def close(self) -> None:
        self.connection.close()
        while self._claims:
            os.close(self._claims.popitem()[1])

    def _explained(self) -> AbstractContextManager[None]:
        return explained(_WHAT, self.where)
