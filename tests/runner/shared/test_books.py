"""Ledgers in rows: what is theirs alone. (What they have in common with files is in `chain/test_ledger.py`.)"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.runner.chain.test_ledger import PLAN, spent, take
from tests.support.chain import LedgerClock
from tests.support.shared_books import GivenLease, shared_books
from trunkline.core.faults import StoreUnavailable
from trunkline.runner.chain.caps import Spent
from trunkline.runner.chain.ledger import Ledger
from trunkline.runner.holding import LeaseLost
from trunkline.runner.shared.books import SharedBooks
from trunkline.store.database.postgres_session import PostgresSession

pytestmark = pytest.mark.slow

ADDRESS = "0x" + "ab" * 20
OTHER = "0x" + "cd" * 20


def test_each_wallet_on_each_chain_has_a_book_of_its_own(postgres_url: str) -> None:
    with shared_books(postgres_url, LedgerClock()) as books:
        assert books.has_any()
        assert not books.has(1, ADDRESS)
        mine = Ledger(books.open(1, ADDRESS.upper().replace("X", "x")))
        others = [Ledger(books.open(1, OTHER)), Ledger(books.open(2, ADDRESS))]
        row = take(mine)
        assert [books.has(1, ADDRESS), books.has(1, OTHER), books.has(2, ADDRESS)] == [True, False, False]
        for other in others:
            assert take(other).nonce == 0
            assert spent(other) == Spent(100, 7)
            assert not other.move(row.id, ("signed",), "refused")
            assert other.rows(None, "signed") != mine.rows(None, "signed")
        assert [found.id for found in mine.rows(None, "signed")] == [row.id]


def test_launchers_that_sign_at_once_take_no_nonce_twice(postgres_url: str) -> None:
    clock = LedgerClock()
    with shared_books(postgres_url, clock) as one, shared_books(postgres_url, clock) as other:
        ledgers = [Ledger(books.open(1, ADDRESS)) for books in (one, other)]
        with ThreadPoolExecutor(8) as pool:
            rows = list(pool.map(lambda number: take(ledgers[number % 2]), range(40)))
        assert sorted(row.nonce or 0 for row in rows) == list(range(40))
        assert spent(ledgers[0]) == Spent(4000, 280)


def test_whoever_lost_the_lease_neither_signs_nor_decides(postgres_url: str) -> None:
    lease = GivenLease()
    with shared_books(postgres_url, LedgerClock(), lease) as books:
        ledger = Ledger(books.open(1, ADDRESS))
        asked = ledger.ask("a1", PLAN, 7)
        lease.good = False
        with pytest.raises(LeaseLost):
            take(ledger)
        with pytest.raises(LeaseLost):
            ledger.decide(asked, True)
        # To look is no harm.
        assert [row.state for row in ledger.rows("a1", "awaiting", "signed")] == ["awaiting"]


def test_what_a_launcher_was_sending_is_looked_up_when_its_lease_is_over(postgres_url: str) -> None:
    with shared_books(postgres_url, LedgerClock()) as books:
        ledger = Ledger(books.open(1, ADDRESS))
        row = take(ledger)
        assert ledger.is_being_sent(row)
        for change in ("fence = 2", "fence = 1, expires_at = 0"):
            with psycopg.connect(postgres_url) as connection:
                connection.execute(f"UPDATE runner_lease SET {change}".encode())
            assert not ledger.is_being_sent(row)
            assert [claim.id for claim in ledger.claims(0, 10)] == [row.id]


def test_a_database_that_is_gone_is_told_of(postgres_url: str) -> None:
    with shared_books(postgres_url, LedgerClock()) as books:
        nowhere = PostgresSession("postgresql:///nothing?host=/nowhere")
        gone = SharedBooks(nowhere, books._lease, books._clock)
        with pytest.raises(StoreUnavailable):
            gone.has(1, ADDRESS)
        with pytest.raises(StoreUnavailable):
            Ledger(gone.open(1, ADDRESS))
