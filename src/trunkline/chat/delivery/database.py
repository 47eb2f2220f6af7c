"""Where the bridge's memory is kept: a file of this machine (`disk`), or a server that machines share (`shared`).

SQL is written once for both: `?` for parameters, and truth as 0 or 1. The few expressions that differ are here.
"""

from __future__ import annotations

from typing import Any, Protocol

from trunkline.base.values import Value
from trunkline.store.database import Dialect

#: Of a message of the outbox: the platform shows something else than it is to show; or the same. With the words of the
#: indexes, which are not used without them.
STALE: dict[Dialect, str] = {"sqlite": "shown IS NOT body", "postgresql": "shown IS DISTINCT FROM body"}
FRESH: dict[Dialect, str] = {"sqlite": "shown IS body", "postgresql": "shown IS NOT DISTINCT FROM body"}


class Fence(Value):
    """The right to serve a platform, where several machines could. A later one has a higher number; in a later epoch,
    any number is higher."""

    epoch: int
    number: int


class StatementResult(Protocol):
    """What a statement gave."""

    @property
    def rowcount(self) -> int:
        """How many rows it has changed."""

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row."""

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All that are left."""


class ChatDatabase(Protocol):
    """The statements of one bridge, one after the other. Each is on the disk when it returns, or all together when
    `commit` does."""

    @property
    def dialect(self) -> Dialect:
        """Whose SQL it is."""

    @property
    def where(self) -> str:
        """What people call it."""

    @property
    def lost(self) -> str:
        """Why nothing is written any more, as `ChatStoreLost` says; empty while it is."""

    def execute(self, statement: str, *parameters: object) -> StatementResult:
        """Run one statement; outside of `begin` and `commit` it is a transaction.

        Raises:
            ConfigError: the database cannot be used, and nothing was written.
            ChatStoreLost: see there.
        """

    def begin(self) -> None:
        """Begin a transaction. Raises as `execute` does."""

    def commit(self) -> None:
        """Have it on the disk. Raises as `execute` does."""

    def rollback(self) -> None:
        """Undo it, if it was not undone already."""

    def claim(self, platform: str) -> None:
        """Serve a platform from here, alone, until `close`. Who has it may claim it again.

        Raises:
            ConfigError: another process of this machine does.
            ChatStoreLost: another machine does.
        """

    def version(self) -> int:
        """A number that changes when others change what they may change: who asks for a message to be sent again."""

    def close(self) -> None:
        """Let go of it, and of the claims. May be called again."""
