"""Ledgers in rows of a PostgreSQL database, for a launcher whose lease is good until a test says otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from trunkline.runner.holding import LeaseLost
from trunkline.runner.shared.books import SharedBooks
from trunkline.runner.shared.schema import FORM
from trunkline.store.database import Transaction, form
from trunkline.store.database.postgres import connect
from trunkline.store.database.postgres_session import PostgresSession


class GivenLease:
    """A lease as far as books need one."""

    fence = 1
    good = True

    def enter(self, tx: Transaction) -> None:
        if not self.good:
            raise LeaseLost


class GivenClock:
    """The database's clock, as a test has it."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now

    def milliseconds(self) -> int:
        return int(self._now() * 1000)


@contextmanager
def shared_books(url: str, now: Callable[[], float], lease: Any = None) -> Iterator[SharedBooks]:
    """The books, and a lease of `a1` in the rows, as long as the block lasts."""
    with connect(url) as connection:
        form.postgres(connection, FORM)
    with connect(url) as connection:
        connection.execute(
            "INSERT INTO runner_lease (agent_id, fence, holder, expires_at) "
            "VALUES ('a1', 1, 'somebody', 1::BIGINT << 62) ON CONFLICT DO NOTHING"
        )
    session = PostgresSession(url)
    try:
        yield SharedBooks(session, lease or GivenLease(), GivenClock(now))  # type: ignore[arg-type]  # as far as needed
    finally:
        session.close()
