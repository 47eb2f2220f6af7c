"""Transactions that are sent, on the embedded chain: each one once, and its end told, whatever happens on the way."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.support.chain import community, embedded, settings, tx
from tests.support.chain_world import RECEIPT, SEND, World
from tests.support.closing import closing
from tests.support.patience import PATIENCE_SECONDS
from trunkline.core.faults import ConfigError
from trunkline.runner.chain.book import FileBooks
from trunkline.runner.chain.ledger import Ledger
from trunkline.runner.chain.performer import TxPerformer

# One chain for all of them, since it takes a while to start and to stop; each has a contract and a home of its own.
pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_transaction_is_sent_and_its_receipt_told(world: World) -> None:
    done = await world.performer().perform(tx("inc(uint256)", "41"), world.community)
    assert done.ok
    assert done.error is None
    assert list(done.result) == [
        "type", "contractAddress", "functionName", "args", "hash", "status", "gasUsed", "blockNumber",
    ]  # fmt: skip
    assert (done.result["type"], done.result["status"], done.result["args"]) == ("tx", 1, ["41"])
    assert done.hash == done.result["hash"] == (await world.node.ask(RECEIPT, done.hash))["transactionHash"]
    assert int(done.result["gasUsed"]) > 21_000
    assert await world.count() == 41


async def test_money_goes_along_and_a_view_is_called_and_not_sent(world: World) -> None:
    performer = world.performer()
    assert (await performer.perform(tx("deposit()", value="1000"), world.community)).ok
    sent = world.node.asked.count(SEND)
    wallet = (await performer.perform(tx("deposit()", value="1"), world.community)).hash
    owner = (await world.node.ask("eth_getTransactionByHash", wallet))["from"]
    seen = await performer.perform(tx("balanceOf", owner), world.community)
    assert seen.result == {
        "type": "call",
        "contractAddress": world.community["contracts"][0]["address"],
        "functionName": "balanceOf",
        "args": [owner],
        "result": "998",
    }
    assert seen.ok
    assert seen.hash is None
    assert world.node.asked.count(SEND) == sent + 1


async def test_contracts_are_found_by_address_in_any_case_and_the_first_is_meant_without_one(world: World) -> None:
    performer = world.performer()
    contract = world.community["contracts"][0]
    by_address = tx("count", contractAddress=contract["address"].upper().replace("0X", "0x"))
    other = contract | {"address": "0x" + "44" * 20}
    assert (await performer.perform(by_address, {"contracts": [other, contract]})).ok
    assert (await performer.perform(tx("count"), world.community)).ok
    older = {"address": contract["address"], "abi": contract["abi"], "chain": "sepolia", "contracts": []}
    assert (await performer.perform(by_address, older)).ok
    assert (await performer.perform(tx("count"), {})).error == "Contract address not available."


async def test_many_at_once_with_one_key_take_different_nonces_and_are_all_mined(world: World) -> None:
    first, second = world.performer(), world.performer(agent="a2")
    sending = [performer.perform(tx("inc()"), world.community) for performer in (first, second) for _ in range(4)]
    done = await asyncio.gather(*sending)
    assert all(one.ok for one in done)
    nonces = sorted([await world.nonce(one.hash) for one in done])
    assert nonces == list(range(nonces[0], nonces[0] + 8))
    assert await world.count() == 8


async def test_another_program_that_uses_the_same_key_only_costs_another_try(world: World, tmp_path: Path) -> None:
    performer = world.performer()

    async def behind(asked: dict[str, Any]) -> bytes:
        del world.node.behaviours["eth_getTransactionCount"]
        answer = await world.node.forward(asked)
        assert (await stranger.perform(tx("inc()"), world.community)).ok
        return answer

    world.node.behaviours["eth_getTransactionCount"] = behind
    async with closing(TxPerformer(settings(world.node.url), FileBooks(str(tmp_path / "elsewhere")))) as stranger:
        done = await performer.perform(tx("inc()"), world.community)
        assert done.ok, done
        assert await world.count() == 2
        performer.received()
    assert await performer.settle() == []


async def test_a_lost_answer_is_looked_up_by_hash_and_nothing_is_sent_twice(world: World) -> None:
    world.node.behaviours[SEND] = world.node.lose_answer
    done = await world.performer().perform(tx("inc()"), world.community)
    assert done.ok
    assert done.result["status"] == 1
    assert world.node.asked.count(SEND) == 1
    assert await world.count() == 1


@pytest.mark.slow
async def test_a_lost_request_is_unknown_and_its_nonce_serves_the_next_one(world: World) -> None:
    performer = world.performer()
    before = await performer.perform(tx("deposit()", value="1"), world.community)
    performer.received()
    world.node.behaviours[SEND] = world.node.lose_request
    lost = await performer.perform(tx("inc(uint256)", 5), world.community)
    assert not lost.ok
    assert lost.hash
    assert lost.result["state"] == "unknown"
    assert "Do not repeat it" in str(lost.error)
    del world.node.behaviours[SEND]
    performer.received()
    assert await performer.settle() == []
    done = await performer.perform(tx("inc()"), world.community)
    assert done.ok
    performer.received()
    # Only one of the two can be in a block, and the other one is.
    assert [(one.outcome.hash, one.outcome.result["state"]) for one in await performer.settle()] == [
        (lost.hash, "replaced")
    ]
    assert await world.nonce(done.hash) == await world.nonce(before.hash) + 1
    assert world.node.asked.count(SEND) == 3
    assert await world.count() == 1


async def test_what_a_crash_kept_from_the_agent_is_told_by_the_next_process(world: World) -> None:
    crashed = world.performer()
    world.node.behaviours[RECEIPT] = world.node.hang
    sending = asyncio.create_task(crashed.perform(tx("inc()"), world.community))
    await world.node.reached(RECEIPT)
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    # Whoever ends here still knows what was sent.
    known = crashed.in_flight
    assert known is not None
    assert (known.ok, known.result["state"], known.result["hash"]) == (False, "pending", known.hash)
    del world.node.behaviours[RECEIPT]
    after = world.performer()
    settled = await after.settle()
    assert [one.outcome.ok for one in settled] == [True]
    assert settled[0].outcome.hash == known.hash
    assert dict(settled[0].action) | {"contractAddress": ""} == {
        "communitySlug": "vault", "threadId": "t1", "contractAddress": "", "functionName": "inc()", "args": [],
        "value": None,
    }  # fmt: skip
    # Told, and not received: it is told again, until somebody has it.
    assert [one.id for one in await world.performer().settle()] == [settled[0].id]
    assert await world.performer(agent="a2").settle() == []
    assert [one.id for one in await after.settle()] == [settled[0].id]
    after.received()
    assert await after.settle() == []
    assert await world.performer().settle() == []


async def test_what_the_caller_could_not_keep_is_told_again_whatever_comes_after(world: World) -> None:
    performer = world.performer()
    lost = await performer.perform(tx("inc()"), world.community)
    assert lost.ok
    assert performer.in_flight is None
    kept = await performer.perform(tx("inc()"), world.community)
    performer.received()
    await performer.close()
    after = world.performer()
    assert [one.outcome.hash for one in await after.settle()] == [lost.hash]
    assert kept.hash != lost.hash


async def test_a_ledger_that_others_hold_does_not_stop_the_event_loop(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.runner.chain.book.BUSY_SECONDS", 5.0)
    performer = world.performer(approval_above=10**16)
    assert (await performer.perform(tx("inc()"), world.community)).ok
    (path,) = (Path(world.home) / "wallets").glob("*.db")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    performer.received()
    doing = {asyncio.create_task(world.performer().settle()), asyncio.create_task(performer.close())}
    # Both wait for the other one, which can go on only because we can.
    assert await asyncio.wait(doing, timeout=0.2) == (set(), doing)
    other.execute("ROLLBACK")
    other.close()
    await asyncio.gather(*doing)
    assert await world.performer().settle() == []


async def test_a_ledger_that_fails_after_the_sending_does_not_take_the_hash_away(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> bool:
        raise ConfigError("The disk is full.")

    monkeypatch.setattr(Ledger, "move", full)
    done = await world.performer().perform(tx("inc()"), world.community)
    assert (done.ok, done.result["state"]) == (False, "unknown")
    assert (await world.node.ask(RECEIPT, done.hash))["status"] == "0x1"


async def test_a_receipt_that_is_late_is_told_later(world: World) -> None:
    performer = world.performer(receipt_seconds=0.2)
    world.node.behaviours[RECEIPT] = world.node.say(result=None)
    late = await performer.perform(tx("inc()"), world.community)
    assert not late.ok
    assert late.hash
    assert late.result["state"] == "pending"
    performer.received()
    assert await performer.settle() == []
    del world.node.behaviours[RECEIPT]
    settled = await performer.settle()
    assert [(one.outcome.ok, one.outcome.hash) for one in settled] == [(True, late.hash)]
    performer.received()
    assert await performer.settle() == []


async def test_a_node_that_gives_no_receipts_is_not_waited_for(world: World) -> None:
    world.node.behaviours[RECEIPT] = world.node.say(error={"code": -32601, "message": "no such method"})
    async with asyncio.timeout(PATIENCE_SECONDS):
        done = await world.performer(receipt_seconds=10 * PATIENCE_SECONDS).perform(tx("inc()"), world.community)
    assert (done.ok, done.result["state"]) == (False, "pending")
    assert await world.count() == 1


async def test_one_that_fails_in_its_block_has_its_hash_and_its_reason(world: World) -> None:
    world.node.behaviours["eth_estimateGas"] = world.node.say(result=hex(30_000))
    done = await world.performer().perform(tx("inc()"), world.community)
    assert not done.ok
    assert done.error == done.result["error"] == "execution reverted: it ran out of gas"
    assert done.hash
    assert (done.result["status"], done.result["hash"]) == (0, done.hash)


async def test_an_older_chain_gets_a_transaction_with_one_price(world: World) -> None:
    async def before_london(asked: dict[str, Any]) -> bytes:
        block = json.loads(await world.node.forward(asked))
        del block["result"]["baseFeePerGas"]
        return json.dumps(block).encode()

    world.node.behaviours["eth_getBlockByNumber"] = before_london
    done = await world.performer().perform(tx("inc()"), world.community)
    assert done.ok
    assert (await world.node.ask("eth_getTransactionByHash", done.hash))["type"] == "0x0"


async def test_above_a_threshold_a_person_is_asked_and_a_yes_sends_it(world: World) -> None:
    assert (await world.performer(approval_above=10**16, agent="a2").perform(tx("inc()"), world.community)).ok
    asking = world.performer(approval_above=0)
    asked = await asking.perform(tx("inc(uint256)", 7), world.community)
    assert not asked.ok
    assert asked.hash is None
    assert asked.result["state"] == "awaiting_approval"
    assert [entry["id"] for entry in asking.pending()] == [asked.result["approvalId"]]
    (waiting,) = asking.pending()
    assert waiting["function"] == "inc(uint256)"
    # All that counts, as the contract will read it.
    shown = waiting["shown"].split("\n")
    assert int(waiting["fee"]) > 0
    costs = (f'max_fee: "{waiting["fee"]}"', f'max_cost: "{waiting["fee"]}"')
    assert shown[0] == "inc(uint256)"
    for line in (f"chain: {waiting['chainId']}", f'contract: "{waiting["to"]}"', 'wei: "0"', 'args: "7"', *costs):
        assert f"  {line}" in shown
    assert waiting["data"].endswith("7")
    assert waiting["data"] in waiting["shown"]
    assert world.performer(agent="a2").pending() == []
    without = world.performer(approval_above=0, agent="a3")
    await without.perform(tx("inc()"), world.community)
    assert "  args: null" in without.pending()[0]["shown"].split("\n")
    assert await asking.settle() == []
    asking.decide(asked.result["approvalId"], True)
    assert asking.pending() == []
    closed = world.performer(approval_above=0)
    await closed.perform(tx("inc()"), world.community)
    await closed.close()
    assert closed.pending() == []
    assert closed._ledgers == {}
    assert await world.count() == 1
    settled = await asking.settle()
    assert [(one.id, one.outcome.ok) for one in settled] == [(asked.result["approvalId"], True)]
    assert await world.count() == 8
    # Neither that which waited nor that which was asked about: only what went out.
    assert asking.sent == 1
    asking.received()
    assert await asking.settle() == []


async def test_the_chain_may_begin_again_under_an_old_ledger(tmp_path: Path) -> None:
    for _ in range(2):
        async with (
            embedded() as (chain, address),
            closing(TxPerformer(settings(chain.url), FileBooks(str(tmp_path)))) as performer,
        ):
            for _ in range(2):
                done = await performer.perform(tx("inc()"), community(address))
                assert done.ok, done
