"""What is done when a node's words about a transaction cannot be relied on. No chain: a node that says what it is told
to."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.chain import KEY, LedgerClock, settings
from trunkline.demo.chain.artefacts import artefact
from trunkline.runner.chain import abi
from trunkline.runner.chain.jsonrpc import RpcRefused, Unanswered
from trunkline.runner.chain.ledger import Ledger, TransactionRow
from trunkline.runner.chain.outcome import Receipt
from trunkline.runner.chain.planning import CallPlan
from trunkline.runner.chain.rpc import Rpc
from trunkline.runner.chain.sending import NONCE_ATTEMPTS, REPLACED_MS, Sender
from trunkline.runner.chain.settings import Caps
from trunkline.runner.chain.simulation import Fees, Quote
from trunkline.runner.chain.wallet import Signed, SpendingWallet

PLAN = CallPlan({"args": []}, 11155111, "0x" + "11" * 20, abi.choose(artefact().abi, "inc()"), b"\x01", 0, [])
QUOTE = Quote(50_000, Fees(10, 1))
WALLET = SpendingWallet(KEY)

SEND = "eth_sendRawTransaction"
COUNT = "eth_getTransactionCount"
LOOKUP = "eth_getTransactionByHash"
BLOCK = "eth_getBlockByNumber"
RECEIPT = "eth_getTransactionReceipt"

TOO_LOW = RpcRefused(-32000, "nonce too low", None)
BUSY = RpcRefused(-32005, "rate limited", None)


class Says(Rpc):
    """Answers each method with the next of its answers, and then always with the last. An exception is raised."""

    def __init__(self, answers: dict[str, list[Any]] | None = None) -> None:
        self.answers: dict[str, list[Any]] = {COUNT: ["0x0"], LOOKUP: [None], BLOCK: [None], RECEIPT: [None]}
        self.answers |= {method: list(each) for method, each in (answers or {}).items()}
        self.asked: list[str] = []

    async def call(self, method: str, *parameters: Any) -> Any:
        self.asked.append(method)
        left = self.answers[method]
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def sender(rpc: Rpc, ledger: Ledger, **more: Any) -> Sender:
    return Sender(rpc, WALLET, ledger, settings("http://127.0.0.1:9", **more))


def approved(ledger: Ledger) -> TransactionRow:
    asked = ledger.ask("a1", PLAN, 7)
    ledger.decide(asked, True)
    return ledger.row(asked)


def block(nonce: int, number: int = 5, hash: str = "0x" + "cd" * 32) -> dict[str, Any]:
    """One with a transaction of the wallet."""
    return {
        "number": hex(number),
        "transactions": [{"from": WALLET.address.lower(), "nonce": hex(nonce), "hash": hash}],
    }


@pytest.mark.parametrize(
    ("lookup", "blocks"),
    [
        (BUSY, [None]),
        (Unanswered("The RPC node is silent."), [None]),
        (None, [None]),
        (None, [BUSY]),
        (None, [{"number": "0x5", "transactions": []}]),
        (None, [block(7)]),
    ],
)
async def test_a_nonce_that_is_said_to_be_used_is_no_reason_to_sign_again(
    ledger: Ledger, lookup: Any, blocks: list[Any]
) -> None:
    rpc = Says({SEND: [TOO_LOW], LOOKUP: [lookup], BLOCK: blocks})
    row = await sender(rpc, ledger).send("a1", PLAN, QUOTE)
    assert row.state == "unknown"
    assert rpc.asked.count(SEND) == 1
    # And its end is told when it is known.
    later = Says({LOOKUP: [{}]})
    assert (await sender(later, ledger).look(row)).state == "pending"


async def test_a_refusal_by_a_node_that_cannot_be_asked_any_more_leaves_it_open(ledger: Ledger) -> None:
    rpc = Says({SEND: [RpcRefused(-32000, "insufficient funds", None)], LOOKUP: [BUSY]})
    assert (await sender(rpc, ledger).send("a1", PLAN, QUOTE)).state == "unknown"


async def test_one_that_is_in_a_block_itself_is_not_signed_again(ledger: Ledger) -> None:
    rpc = Says({SEND: [TOO_LOW]})

    def mine(row: TransactionRow) -> None:
        rpc.answers[BLOCK] = [block(0, hash=row.hash or "")]

    sending = Sender(rpc, WALLET, ledger, settings("http://x"), mine)
    assert (await sending.send("a1", PLAN, QUOTE)).state == "pending"
    assert rpc.asked.count(SEND) == 1


async def test_where_another_one_is_seen_with_its_nonce_it_gets_the_next(ledger: Ledger) -> None:
    older = [{"number": "0x6", "transactions": []}, block(0)]
    rpc = Says({SEND: [TOO_LOW, "0x"], COUNT: ["0x0", "0x1"], BLOCK: older})
    row = await sender(rpc, ledger).send("a1", PLAN, QUOTE)
    assert (row.state, row.nonce) == ("pending", 1)
    assert [each.id for each in ledger.rows(None, "pending", "signed", "refused")] == [row.id]


@pytest.mark.parametrize(
    ("counts", "blocks", "text"),
    [
        (["0x0", BUSY], [block(0)], "Not sent: The RPC node refused: rate limited"),
        (["0x0", Unanswered("Silence.")], [block(0)], "Not sent: Silence."),
        ([hex(n) for n in range(20)], [block(n) for n in range(20)], "Not sent: another program uses this wallet's"),
    ],
)
async def test_an_approved_one_whose_second_try_fails_is_told(
    ledger: Ledger, counts: list[Any], blocks: list[Any], text: str
) -> None:
    rpc = Says({SEND: [TOO_LOW], COUNT: counts, BLOCK: blocks})
    row = await sender(rpc, ledger).send("a1", PLAN, QUOTE, approved(ledger))
    assert [(told.id, told.state) for told in ledger.untold("a1")] == [(row.id, "refused")]
    assert row.problem.startswith(text)
    assert rpc.asked.count(SEND) in (1, NONCE_ATTEMPTS)


async def test_a_second_try_spends_the_same_money_and_caps_that_refuse_it_are_told(ledger: Ledger) -> None:
    enough = Caps(day_fee=QUOTE.fee)
    rpc = Says({SEND: [TOO_LOW, "0x"], COUNT: ["0x0", "0x1"], BLOCK: [block(0)]})
    assert (await sender(rpc, ledger, caps=enough).send("a1", PLAN, QUOTE, approved(ledger))).state == "pending"
    waiting = approved(ledger)
    rpc = Says({SEND: [TOO_LOW], COUNT: ["0x2", "0x3"], BLOCK: [block(2)]})

    def spend(row: TransactionRow) -> None:
        if row.state == "signed":
            assert ledger.reserve(
                "a2", PLAN, (1, 1), row=None, floor=40, free=(), seconds=1,
                allow=lambda _: None, sign=lambda _: Signed("0x", b""),
            )  # fmt: skip

    both = settings("http://x", caps=Caps(day_fee=2 * QUOTE.fee))
    row = await Sender(rpc, WALLET, ledger, both, spend).send("a1", PLAN, QUOTE, waiting)
    assert row.state == "refused"
    assert "`execution.caps.dayFeeWei`" in row.problem
    assert row.id in [told.id for told in ledger.untold("a1")]


async def test_one_whose_nonce_a_stranger_took_is_replaced_only_after_a_minute(
    ledger: Ledger, clock: LedgerClock
) -> None:
    rpc = Says({SEND: [TOO_LOW]})
    row = await sender(rpc, ledger).send("a1", PLAN, QUOTE)
    later = sender(Says({COUNT: ["0x1"]}), ledger)
    clock.now += REPLACED_MS / 1000
    assert REPLACED_MS == 60_000
    assert (await later.look(row)).state == "unknown"
    clock.now += 0.002
    # As long as nobody used the nonce, it may still come.
    assert (await sender(Says(), ledger).look(row)).state == "unknown"
    assert (await later.look(row)).state == "replaced"
    assert [told.id for told in ledger.untold("a1")] == [row.id]


async def test_one_whose_nonce_we_used_ourselves_is_replaced_as_soon_as_that_is_seen(ledger: Ledger) -> None:
    rpc = Says({SEND: [TOO_LOW, "0x"]})
    lost = await sender(rpc, ledger).send("a1", PLAN, QUOTE)
    second = await sender(rpc, ledger).send("a1", PLAN, QUOTE)
    assert second.nonce == lost.nonce
    assert (await sender(rpc, ledger).look(lost)).state == "unknown"
    ledger.finish(second.id, Receipt(0, 21_000, 9), 5)
    assert (await sender(rpc, ledger).look(lost)).state == "replaced"
