from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.chain import LedgerClock
from trunkline.core.faults import ConfigError
from trunkline.demo.chain.artefacts import artefact
from trunkline.runner.chain import abi
from trunkline.runner.chain.abi import Refusal
from trunkline.runner.chain.book import FileBook
from trunkline.runner.chain.caps import DAY_MS, Spent
from trunkline.runner.chain.ledger import MOST_TOLD, Ledger, TransactionRow
from trunkline.runner.chain.outcome import Receipt
from trunkline.runner.chain.planning import CallPlan
from trunkline.runner.chain.wallet import Signed

PLAN = CallPlan({"args": []}, 11155111, "0x" + "11" * 20, abi.choose(artefact().abi, "inc()"), b"\x01", 100, [])


def place(ledger: Ledger) -> str:
    assert isinstance(ledger.book, FileBook)
    return ledger.book.path


def take(
    ledger: Ledger, floor: int = 0, *, free: tuple[int, ...] = (), row: TransactionRow | None = None
) -> TransactionRow:
    reserved = ledger.reserve(
        "a1", PLAN, (50_000, 7), row=row, floor=floor, free=free, seconds=5,
        allow=lambda spent: None, sign=lambda nonce: Signed(f"0x{nonce:064x}", b"raw%d" % nonce),
    )  # fmt: skip
    assert reserved is not None
    assert reserved[1] == b"raw%d" % (reserved[0].nonce or 0)
    return reserved[0]


def spent(ledger: Ledger) -> Spent:
    found: list[Spent] = []

    def look(so_far: Spent) -> None:
        found.append(so_far)
        raise Refusal("only looking")

    with pytest.raises(Refusal):
        ledger.reserve(
            "a1", PLAN, (1, 1), row=None, floor=0, free=(), seconds=1, allow=look, sign=lambda _: Signed("", b"")
        )
    return found[0]


def test_nonces_are_taken_in_order_and_gaps_are_closed_first(ledger: Ledger) -> None:
    first, second, third = take(ledger, 5), take(ledger, 5), take(ledger, 5)
    assert [first.nonce, second.nonce, third.nonce] == [5, 6, 7]
    ledger.move(second.id, ("signed",), "refused")
    assert take(ledger, 5).nonce == 6
    assert take(ledger, 5).nonce == 8
    assert take(ledger, 20).nonce == 20


def test_a_nonce_is_used_again_only_where_no_node_has_its_transaction(ledger: Ledger) -> None:
    lost = take(ledger)
    ledger.move(lost.id, ("signed",), "unknown")
    assert [row.id for row in ledger.claims(0, 10)] == [lost.id]
    assert take(ledger).nonce == 1
    assert take(ledger, free=(lost.id,)).nonce == 0


def test_what_is_being_sent_keeps_its_nonce_until_its_time_is_over(ledger: Ledger, clock: LedgerClock) -> None:
    row = take(ledger)
    assert ledger.claims(0, 10) == []
    clock.now += 6
    assert [claim.id for claim in ledger.claims(0, 10)] == [row.id]


def test_what_a_process_that_is_gone_was_sending_is_looked_up_at_once(file_ledger: Ledger) -> None:
    row = take(file_ledger)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    writer = sqlite3.connect(place(file_ledger))
    with writer:
        writer.execute("UPDATE transactions SET pid = ?", (gone.pid,))
    writer.close()
    assert [claim.id for claim in file_ledger.claims(0, 10)] == [row.id]


def test_signed_bytes_are_on_the_disk_before_anybody_gets_them(file_ledger: Ledger) -> None:
    row = take(file_ledger)
    reader = sqlite3.connect(place(file_ledger))
    assert reader.execute("SELECT raw, state, hash FROM transactions").fetchall() == [(b"raw0", "signed", row.hash)]
    assert file_ledger.row(row.id).plan == PLAN
    reader.close()
    assert os.stat(place(file_ledger)).st_mode & 0o777 == 0o600


def test_what_was_refused_or_undone_is_not_spent_and_what_is_old_is_forgiven(
    ledger: Ledger, clock: LedgerClock
) -> None:
    assert spent(ledger) == Spent(0, 0)
    refused, undone, done, unknown = take(ledger), take(ledger), take(ledger), take(ledger)
    assert spent(ledger) == Spent(400, 28)
    ledger.move(refused.id, ("signed",), "refused")
    ledger.finish(undone.id, Receipt(0, 1, 1), 3, "no")
    ledger.finish(done.id, Receipt(1, 1, 1), 5)
    ledger.move(unknown.id, ("signed",), "unknown")
    assert spent(ledger) == Spent(200, 3 + 5 + 7)
    clock.now += DAY_MS / 1000 + 1
    assert spent(ledger) == Spent(0, 0)


def test_a_refusal_leaves_nothing_behind(ledger: Ledger) -> None:
    spent(ledger)
    assert ledger.rows(None, "signed", "refused") == []
    assert take(ledger).nonce == 0


def test_an_approved_transaction_is_sent_by_one_process_only(ledger: Ledger) -> None:
    asked = ledger.ask("a1", PLAN, 7)
    assert ledger.decide(asked, True)
    assert not ledger.decide(asked, False)
    approved = ledger.row(asked)
    assert take(ledger, row=approved).id == asked
    again = ledger.reserve(
        "a1", PLAN, (1, 1), row=approved, floor=0, free=(), seconds=1,
        allow=lambda spent: None, sign=lambda _: Signed("", b""),
    )  # fmt: skip
    assert again is None


def test_nobody_decides_about_what_has_expired(ledger: Ledger, clock: LedgerClock) -> None:
    asked = ledger.ask("a1", PLAN, 7)
    clock.now += 100
    ledger.expire(ledger.clock())
    assert not ledger.decide(asked, True)
    assert [row.state for row in ledger.untold("a1")] == ["expired"]


def test_an_agent_is_told_once_of_each_state_and_only_of_its_own(ledger: Ledger) -> None:
    row = take(ledger)
    assert ledger.untold("a1") == []
    ledger.move(row.id, ("signed",), "unknown")
    assert [(told.id, told.state) for told in ledger.untold("a1")] == [(row.id, "unknown")]
    assert ledger.untold("a2") == []
    ledger.tell([(row.id, "unknown")])
    assert ledger.untold("a1") == []
    ledger.finish(row.id, Receipt(1, 21_000, 9, 2), 42_000)
    assert [told.receipt for told in ledger.untold("a1")] == [Receipt(1, 21_000, 9, 2)]


def test_news_is_told_however_much_is_known(file_ledger: Ledger) -> None:
    known = file_ledger.ask("a1", PLAN, 7)
    file_ledger.decide(known, False)
    file_ledger.tell([(known, "rejected")])
    writer = sqlite3.connect(place(file_ledger))
    with writer:
        writer.execute(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)"
            " INSERT INTO transactions (agent, state, told, plan, value, fee, created, changed)"
            " SELECT agent, state, told, plan, value, fee, created, changed FROM n JOIN transactions"
        )
    writer.close()
    rejected = [file_ledger.ask("a1", PLAN, 7) for _ in range(MOST_TOLD + 1)]
    for id in rejected:
        file_ledger.decide(id, False)
    assert [row.id for row in file_ledger.untold("a1")] == rejected[:-1]
    file_ledger.tell([(id, "rejected") for id in rejected[:-1]])
    assert [row.id for row in file_ledger.untold("a1")] == rejected[-1:]


def test_old_rows_are_thrown_away_when_the_agent_knows_them(ledger: Ledger, clock: LedgerClock) -> None:
    known, unknown = take(ledger), take(ledger)
    for row in (known, unknown):
        ledger.finish(row.id, Receipt(1, 1, 1), 1)
    ledger.tell([(known.id, "mined")])
    clock.now += 91 * DAY_MS / 1000
    reopened = Ledger(ledger.book)
    assert [row.id for row in reopened.rows(None, "mined")] == [unknown.id]


def test_a_newer_or_broken_ledger_is_refused_with_its_path(tmp_path: Path) -> None:
    newer = sqlite3.connect(tmp_path / "newer.db")
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    (tmp_path / "broken.db").write_bytes(b"no database at all, but long enough" * 100)
    for name in ("newer.db", "broken.db"):
        with pytest.raises(ConfigError, match=name):
            Ledger(FileBook(str(tmp_path / name)))
