"""Where a wallet's ledger is kept: in a file of this machine, or wherever all launchers reach it.

A book holds one table, `transactions`, with the rows of one wallet on one chain. What `Ledger` says to it is SQL that
SQLite understands.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from trunkline.store.explaining import explained
from trunkline.store.private import open_private
from trunkline.store.transactions import write_transaction

#: How long to wait for other processes: each signs within the lock, which takes milliseconds.
BUSY_SECONDS = 30.0

MIGRATIONS = (
    (
        """
        CREATE TABLE transactions (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            agent TEXT NOT NULL,
            state TEXT NOT NULL,
            told TEXT,
            plan BLOB NOT NULL,
            value TEXT NOT NULL,
            fee TEXT NOT NULL,
            gas INTEGER,
            nonce INTEGER,
            hash TEXT,
            raw BLOB,
            until INTEGER NOT NULL DEFAULT 0,
            pid INTEGER NOT NULL DEFAULT 0,
            reserved INTEGER NOT NULL DEFAULT 0,
            receipt BLOB,
            problem TEXT NOT NULL DEFAULT '',
            created INTEGER NOT NULL,
            changed INTEGER NOT NULL
        )
        """,
        "CREATE INDEX transactions_nonce ON transactions (nonce)",
        "CREATE INDEX transactions_reserved ON transactions (reserved)",
        "CREATE INDEX transactions_changed ON transactions (changed)",
        "CREATE INDEX transactions_untold ON transactions (agent, state) WHERE told IS NOT state",
    ),
)

#: What it is to people.
_WHAT = "wallet's ledger"

Fields = tuple[Any, ...]
"""The columns of a row, in the order in which they were asked for."""


class Book(Protocol):
    """The rows of one wallet on one chain. May be used by several threads; each of its methods may wait."""

    @property
    def sender(self) -> int:
        """What stands for whoever sends now, in the column `pid`."""

    def clock(self) -> int:
        """The time in milliseconds since 1970; the same for all who have the book. Does not wait."""

    def writing(self) -> AbstractContextManager[None]:
        """Change rows within: all or nothing, and alone, whichever process the others are in.

        Raises:
            Fault: it cannot be done.
        """

    def reading(self) -> AbstractContextManager[None]:
        """Look at rows within.

        Raises:
            Fault: it cannot be done.
        """

    def rows(self, statement: str, *parameters: object) -> list[Fields]:
        """What a statement answers. Only within `reading` or `writing`."""

    def change(self, statement: str, *parameters: object) -> int:
        """How many rows a statement changed. Only within `writing`."""

    def sends(self, agent: str, sender: int) -> bool:
        """Whether that sender of an agent's transactions is still there."""

    def close(self) -> None:
        """Let go of it. May be called again."""


class FileBook:
    """A `Book` in a SQLite database, private to its owner, shared by all processes of this machine.

    Each transaction is on the disk when it is over (`synchronous=FULL`), and SQLite's write lock is what keeps two
    processes apart.
    """

    def __init__(self, path: str, now: Callable[[], float] = time.time) -> None:
        """Open it, or make it.

        Raises:
            ConfigError: it cannot be opened, or a newer version made it.
        """
        self.path = os.path.abspath(path)
        self._now = now
        self._lock = threading.Lock()
        self._connection = open_private(self.path, _WHAT, MIGRATIONS, busy_seconds=BUSY_SECONDS, any_thread=True)

    @property
    def sender(self) -> int:
        return os.getpid()

    def clock(self) -> int:
        return int(self._now() * 1000)

    @contextmanager
    def writing(self) -> Iterator[None]:
        with self.reading(), write_transaction(self._connection):
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        with self._lock, explained(_WHAT, self.path):
            yield

    def rows(self, statement: str, *parameters: object) -> list[Fields]:
        return self._connection.execute(statement, parameters).fetchall()

    def change(self, statement: str, *parameters: object) -> int:
        return self._connection.execute(statement, parameters).rowcount

    def sends(self, agent: str, sender: int) -> bool:
        try:
            os.kill(sender, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True

    def close(self) -> None:
        with self._lock:
            self._connection.close()


class Books(Protocol):
    """All books that an agent's transactions may be in."""

    def has_any(self) -> bool:
        """Whether there may be one. May wait."""

    def has(self, chain_id: int, address: str) -> bool:
        """Whether there is one for a wallet on a chain. May wait."""

    def open(self, chain_id: int, address: str) -> Book:
        """The book of a wallet on a chain, made where it is missing. May wait.

        Raises:
            Fault: it cannot be opened.
        """


class FileBooks:
    """Those in a state directory, under `wallets`."""

    def __init__(self, home: str) -> None:
        self._folder = os.path.join(home, "wallets")

    def has_any(self) -> bool:
        return os.path.isdir(self._folder)

    def has(self, chain_id: int, address: str) -> bool:
        return os.path.exists(self._path(chain_id, address))

    def open(self, chain_id: int, address: str) -> Book:
        return FileBook(self._path(chain_id, address))

    def _path(self, chain_id: int, address: str) -> str:
        return os.path.join(self._folder, f"{chain_id}-{address.lower()}.db")
