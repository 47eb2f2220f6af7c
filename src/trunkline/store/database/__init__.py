"""The database behind the network and the exchange: what SQLite and PostgreSQL have in common here.

Work is a function that gets a `Transaction` and returns a value. It runs in a thread, whole or not at all: what it
raises undoes what it did, and reaches the caller. `write` returns only after what was written is on the disk.

SQL is written once for both: `?` for parameters, no `?` in literals, texts in `TEXT`, moments in `BIGINT` as
milliseconds since 1970, truth in `INTEGER` as 0 or 1, JSON as `TEXT`. Where the two differ (full-text search), look
at `Database.dialect`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeVar

Row = Mapping[str, Any]
"""One row, by the names of its columns."""

Dialect = Literal["sqlite", "postgresql"]

T = TypeVar("T")


class Transaction(Protocol):
    """What work may do to the database."""

    @property
    def dialect(self) -> Dialect:
        """Which SQL is spoken, for the few statements that differ."""

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """Run a statement that returns nothing. Returns how many rows it touched."""

    def one(self, sql: str, parameters: Sequence[Any] = ()) -> Row | None:
        """The first row of an answer, or None."""

    def all(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """All rows of an answer."""


Work = Callable[[Transaction], T]


class DatabaseError(Exception):
    """A database did not do what it was asked for. Raise one of its children."""


class Conflict(DatabaseError):
    """A unique or foreign key forbids what a statement wanted to write."""


class DatabaseGone(DatabaseError):
    """The database cannot be reached, or its disk is full or read-only.

    Nothing was written; only where a server vanished during a commit, that is not known, and the text says so.
    """


class Database(Protocol):
    """An open database, brought to the form that this version expects."""

    @property
    def dialect(self) -> Dialect:
        """Which SQL is spoken."""

    async def read(self, work: Work[T]) -> T:
        """Run work that only reads, on one consistent state.

        Raises:
            DatabaseGone: it could not be asked.
        """

    async def write(self, work: Work[T]) -> T:
        """Run work that writes. Work of several callers may share one commit; each is still whole or undone.

        Raises:
            Conflict: a key forbids it.
            DatabaseGone: it could not be written.
        """

    async def close(self) -> None:
        """Finish what was begun, and let go of all connections."""
