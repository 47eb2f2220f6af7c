"""The ledgers of wallets, where every launcher finds them that may run an agent which uses the wallet.

As with what a runner remembers, a book is written only under a lease that is still ours. Agents that share a wallet may
run in different launchers: whoever writes in its book is alone with it, all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

from trunkline.runner.chain.book import Book, Fields
from trunkline.runner.shared.clock import DatabaseClock
from trunkline.runner.shared.leases import Lease
from trunkline.runner.shared.memory import explained
from trunkline.runner.shared.schema import NOW
from trunkline.store.database import Transaction

if TYPE_CHECKING:
    from trunkline.store.database.postgres_session import PostgresSession

#: What a ledger says in the words of SQLite, and of PostgreSQL.
_WORDS = (
    ("transactions", "runner_wallet"),
    ("told IS NOT state", "told IS DISTINCT FROM state"),
    ("told IS state", "told IS NOT DISTINCT FROM state"),
    ("id IS NOT ?", "id IS DISTINCT FROM ?"),
)
#: A ledger has about twenty statements.
_STATEMENTS = 64


class SharedBooks:
    """All books, for one agent: `Books`."""

    def __init__(self, session: PostgresSession, lease: Lease, clock: DatabaseClock) -> None:
        self._session = session
        self._lease = lease
        self._clock = clock

    def has_any(self) -> bool:
        return True

    def has(self, chain_id: int, address: str) -> bool:
        with explained(), self._session.transaction() as tx:
            found = tx.one(
                "SELECT 1 AS found FROM runner_transaction WHERE wallet = ? LIMIT 1", (_wallet(chain_id, address),)
            )
        return found is not None

    def open(self, chain_id: int, address: str) -> Book:
        return SharedBook(self._session, self._lease, self._clock, _wallet(chain_id, address))


class SharedBook:
    """A `Book` in rows."""

    def __init__(self, session: PostgresSession, lease: Lease, clock: DatabaseClock, wallet: str) -> None:
        self._session = session
        self._lease = lease
        self._clock = clock
        self._wallet = wallet
        self._under_way: Transaction | None = None

    @property
    def sender(self) -> int:
        # A process is known to its machine alone.
        return self._lease.fence

    def clock(self) -> int:
        return self._clock.milliseconds()

    @contextmanager
    def writing(self) -> Iterator[None]:
        with self.reading():
            # First this: while it is waited for, the lease can be renewed.
            self._rows("SELECT pg_advisory_xact_lock(hashtextextended('runner_wallet:' || ?, 0))", self._wallet)
            self._lease.enter(self._transaction)
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        with explained(), self._session.transaction() as tx:
            self._under_way = tx
            try:
                self._rows("SELECT set_config('trunkline.wallet', ?, true)", self._wallet)
                yield
            finally:
                self._under_way = None

    def rows(self, statement: str, *parameters: object) -> list[Fields]:
        return self._rows(_in_postgres(statement), *parameters)

    def change(self, statement: str, *parameters: object) -> int:
        return self._transaction.execute(_in_postgres(statement), parameters)

    def sends(self, agent: str, sender: int) -> bool:
        with explained(), self._session.transaction() as tx:
            found = tx.one(
                f"SELECT 1 AS found FROM runner_lease WHERE agent_id = ? AND fence = ? AND expires_at > {NOW}",  # noqa: S608 - a fixed text
                (agent, sender),
            )
        return found is not None

    def close(self) -> None:
        return None

    def _rows(self, statement: str, *parameters: object) -> list[Fields]:
        return [tuple(row.values()) for row in self._transaction.all(statement, parameters)]

    @property
    def _transaction(self) -> Transaction:
        if self._under_way is None:
            raise AssertionError("only within `reading` or `writing`")
        return self._under_way


def _wallet(chain_id: int, address: str) -> str:
    return f"{chain_id}-{address.lower()}"


@lru_cache(_STATEMENTS)
def _in_postgres(statement: str) -> str:
    for words, others in _WORDS:
        statement = statement.replace(words, others)
    return statement
