"""Transactions on the embedded chain, through a node that can be made to misbehave."""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.support.chain import KEY, Node, community, embedded, settings, tx
from trunkline.base.redact import Redactor
from trunkline.core.faults import ConfigError, UnknownCall
from trunkline.exchange.chain.artefacts import artefact
from trunkline.exchange.chain.embedded import EmbeddedChain
from trunkline.runner.chain.ledger import Ledger
from trunkline.runner.chain.performer import TxPerformer
from trunkline.runner.chain.settings import Caps

# One chain for all of them, since it takes a while to start and to stop; each has a contract and a home of its own.
pytestmark = pytest.mark.asyncio(loop_scope="module")

SEND = "eth_sendRawTransaction"
RECEIPT = "eth_getTransactionReceipt"


class World:
    """A chain, a node before it, the contract, and a home."""

    def __init__(self, node: Node, address: str, home: Path) -> None:
        self.node = node
        self.community = community(address)
        self.home = str(home)
        self._made: list[TxPerformer] = []

    def performer(self, *, url: str | None = None, agent: str = "a1", **more: Any) -> TxPerformer:
        made = TxPerformer(settings(url or self.node.url, **more), self.home, agent_id=agent)
        self._made.append(made)
        return made

    async def count(self) -> int:
        """What the contract counted, past all misbehaviour."""
        selector = "0x06661abd"
        to = self.community["contracts"][0]["address"]
        return int(await self.node.ask("eth_call", {"to": to, "data": selector}, "latest"), 16)

    async def nonce(self, hash: str | None) -> int:
        return int((await self.node.ask("eth_getTransactionByHash", hash))["nonce"], 16)

    async def close(self) -> None:
        for performer in self._made:
            await performer.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chain() -> AsyncIterator[EmbeddedChain]:
    async with embedded() as (running, _):
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def world(chain: EmbeddedChain, tmp_path: Path) -> AsyncIterator[World]:
    address = await chain.deploy(artefact().bytecode)
    async with Node.before(chain.url) as node:
        made = World(node, address, tmp_path)
        yield made
        await made.close()


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


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (tx("inc(uint256)", 0), "execution reverted: n=0"),
        (tx("withdraw", 5), "execution reverted: TooLittle(available=0, wanted=5)"),
        (tx("nope"), "Function not allowed."),
        (tx("inc(uint8)", 1), "Function not allowed."),
        (tx("inc()", contractAddress="0x" + "22" * 20), "Contract address not allowed."),
        (tx("inc()", contractAddress=5), "Contract address not allowed."),
        (tx("inc()", value="5"), "`inc()` is not payable: leave `value` out."),
        (tx("deposit()", value="1 ether"), '`value` must be wei as a decimal string, such as "1000".'),
    ],
)
async def test_what_would_fail_is_told_and_not_sent(world: World, action: dict[str, Any], text: str) -> None:
    done = await world.performer().perform(action, world.community)
    assert not done.ok
    assert done.result == {"error": text}
    assert done.error == text
    assert SEND not in world.node.asked


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"address": None}, "Contract address not available."),
        ({"address": "0x12"}, "Contract address not available."),
        ({"abi": None}, "Contract ABI not available."),
        ({"abi": "{"}, "Contract ABI not available."),
        ({"abi": [], "address": ""}, "Contract address not available."),
        ({"chain": "Mainnet"}, "The contract's chain 'Mainnet' is not configured"),
        ({"chain": None}, "The contract's chain None is not configured"),
        ({"address": "0x" + "33" * 20}, "There is no contract at"),
    ],
)
async def test_a_contract_that_cannot_be_used_is_told(world: World, change: dict[str, Any], text: str) -> None:
    contract = world.community["contracts"][0] | change
    done = await world.performer().perform(tx("inc()"), {"slug": "vault", "contracts": [contract]})
    assert done.error is not None
    assert done.error.startswith(text)
    assert SEND not in world.node.asked


async def test_without_a_wallet_or_a_node_that_is_said_first(world: World) -> None:
    for missing in ({"url": ""}, {"key": ""}):
        performer = TxPerformer(settings(**{"url": world.node.url, **missing}), world.home)
        done = await performer.perform(tx("nope"), {})
        assert done.error == "Execution wallet or Alchemy key missing."
        assert await performer.settle() == []
        await performer.close()


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


async def test_nothing_is_signed_for_another_chain(world: World) -> None:
    world.node.behaviours["eth_chainId"] = world.node.say(result="0x1")
    done = await world.performer().perform(tx("inc()"), world.community)
    assert done.error == "The RPC node speaks for chain 1, and the contract is on chain 11155111; nothing sent."
    assert world.node.asked == ["eth_chainId"]


@pytest.mark.parametrize(
    ("limits", "name"),
    [
        (Caps(value=999), "valueWei"),
        (Caps(fee=1000), "feeWei"),
        (Caps(gas=30_000), "gas"),
        (Caps(day_value=1999), "dayValueWei"),
        (None, "dayFeeWei"),
    ],
)
async def test_caps_stop_a_transaction_before_it_is_signed(world: World, limits: Caps | None, name: str) -> None:
    if limits is None:
        # Enough for one of them, and not for two.
        tried = await world.performer(dry_run=True).perform(tx("deposit()", value="1000"), world.community)
        limits = Caps(day_fee=int(tried.result["maxFee"]) + 10**10)
    performer = world.performer(caps=limits)
    outcomes = [await performer.perform(tx("deposit()", value="1000"), world.community) for _ in range(3)]
    errors = [done.error for done in outcomes if not done.ok]
    assert errors
    assert all(f"`execution.caps.{name}`" in str(error) for error in errors)
    assert world.node.asked.count(SEND) == 3 - len(errors) == (1 if name.startswith("day") else 0)
    # Another process with the same wallet has spent the same money.
    if name == "dayValueWei":
        assert not (await world.performer(caps=limits).perform(tx("deposit()", value="1000"), world.community)).ok


async def test_a_dry_run_does_everything_but_send(world: World) -> None:
    performer = world.performer(dry_run=True)
    done = await performer.perform(tx("inc()"), world.community)
    assert done.ok
    assert done.hash is None
    assert done.result["dryRun"] is True
    assert int(done.result["gasLimit"]) > 21_000
    assert (await performer.perform(tx("inc(uint256)", 0), world.community)).error == "execution reverted: n=0"
    assert SEND not in world.node.asked
    assert await world.count() == 0


async def test_many_at_once_with_one_key_take_different_nonces_and_are_all_mined(world: World) -> None:
    first, second = world.performer(), world.performer(agent="a2")
    sending = [performer.perform(tx("inc()"), world.community) for performer in (first, second) for _ in range(4)]
    done = await asyncio.gather(*sending)
    assert all(one.ok for one in done)
    nonces = sorted([await world.nonce(one.hash) for one in done])
    assert nonces == list(range(nonces[0], nonces[0] + 8))
    assert await world.count() == 8


async def test_another_program_that_uses_the_same_key_only_costs_another_try(world: World, tmp_path: Path) -> None:
    stranger = TxPerformer(settings(world.node.url), str(tmp_path / "elsewhere"))
    performer = world.performer()

    async def behind(asked: dict[str, Any]) -> bytes:
        del world.node.behaviours["eth_getTransactionCount"]
        answer = await world.node.forward(asked)
        assert (await stranger.perform(tx("inc()"), world.community)).ok
        return answer

    world.node.behaviours["eth_getTransactionCount"] = behind
    done = await performer.perform(tx("inc()"), world.community)
    assert done.ok, done
    assert await world.count() == 2
    performer.received()
    await stranger.close()
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
    monkeypatch.setattr("trunkline.runner.chain.ledger.BUSY_SECONDS", 5.0)
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


@pytest.mark.slow
async def test_a_node_that_hangs_is_given_up_in_time(world: World) -> None:
    for method in ("eth_chainId", "eth_call", SEND):
        world.node.behaviours = {method: world.node.hang}
        async with asyncio.timeout(5):
            done = await world.performer(timeout_seconds=0.2).perform(tx("inc()"), world.community)
        assert not done.ok
        assert "The RPC node did not answer" in str(done.error) or done.result["state"] == "unknown"


async def test_a_node_that_is_not_there_is_told_without_its_address(world: World) -> None:
    done = await world.performer(url="http://127.0.0.1:9/v2/S3cretKey99").perform(tx("inc()"), world.community)
    assert done.error == "The RPC node cannot be reached (ConnectError)."


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("eth_chainId", {"result": None}),
        ("eth_chainId", {"result": ["x"]}),
        ("eth_call", {"result": "zz"}),
        ("eth_call", {"error": {"code": -32005, "message": "limit exceeded"}}),
        ("eth_estimateGas", {"result": "0x" + "f" * 64}),
        ("eth_getBlockByNumber", {"result": {"baseFeePerGas": "lots"}}),
        ("eth_getBlockByNumber", {"result": {"baseFeePerGas": hex(2**200)}}),
        ("eth_getTransactionCount", {"result": -1}),
        (SEND, {"error": {"code": -32000, "message": "insufficient funds for gas"}}),
    ],
)
async def test_whatever_a_node_answers_is_an_outcome_and_nothing_is_stuck(
    world: World, method: str, answer: dict[str, Any]
) -> None:
    performer = world.performer()
    world.node.behaviours[method] = world.node.say(**answer)
    done = await performer.perform(tx("inc()"), world.community)
    assert not done.ok
    assert done.error
    performer.received()
    world.node.behaviours.clear()
    assert await performer.settle() == []
    assert (await performer.perform(tx("inc()"), world.community)).ok


@pytest.mark.parametrize("body", [b"", b"<html>no</html>", b'{"jsonrpc":"2.0","id":1,"result":"' + b"0" * 5_000_000])
async def test_an_answer_that_is_none_or_has_no_end_is_told(world: World, body: bytes) -> None:
    async def behave(asked: dict[str, Any]) -> bytes:
        return body

    world.node.behaviours["eth_chainId"] = behave
    assert "The RPC node's answer" in str((await world.performer().perform(tx("inc()"), world.community)).error)


async def test_a_status_that_is_no_success_is_told_and_an_error_within_it_is_read(world: World) -> None:
    async def busy(asked: dict[str, Any]) -> bytes:
        return b"<html>slow down</html>"

    world.node.status = 429
    world.node.behaviours["eth_chainId"] = busy
    performer = world.performer()
    assert (await performer.perform(tx("inc()"), world.community)).error == (
        "The RPC node answered with HTTP status 429."
    )
    world.node.behaviours["eth_chainId"] = world.node.say(error={"code": -32005, "message": "slow down"})
    assert (await performer.perform(tx("inc()"), world.community)).error == ("The RPC node refused: slow down")


async def test_a_node_that_gives_no_receipts_is_not_waited_for(world: World) -> None:
    world.node.behaviours[RECEIPT] = world.node.say(error={"code": -32601, "message": "no such method"})
    async with asyncio.timeout(4):
        done = await world.performer(receipt_seconds=60.0).perform(tx("inc()"), world.community)
    assert (done.ok, done.result["state"]) == (False, "pending")
    assert await world.count() == 1


async def test_one_that_fails_in_its_block_has_its_hash_and_its_reason(world: World) -> None:
    world.node.behaviours["eth_estimateGas"] = world.node.say(result=hex(30_000))
    done = await world.performer().perform(tx("inc()"), world.community)
    assert not done.ok
    assert done.error == done.result["error"] == "execution reverted: it ran out of gas"
    assert done.hash
    assert (done.result["status"], done.result["hash"]) == (0, done.hash)


async def test_a_key_that_is_none_is_told_without_it(world: World) -> None:
    done = await world.performer(key="0" * 64).perform(tx("inc()"), world.community)
    assert done.error == "`execution.privateKey` is not a private key."


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
    assert asking.pending()[0]["function"] == "inc(uint256)"
    assert world.performer(agent="a2").pending() == []
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
    asking.received()
    assert await asking.settle() == []


async def test_a_no_sends_nothing_and_is_told(world: World) -> None:
    performer = world.performer(approval_above=0)
    asked = await performer.perform(tx("inc()"), world.community)
    performer.decide(asked.result["approvalId"], False)
    settled = await performer.settle()
    assert [one.outcome.error for one in settled] == ["Not sent: a person rejected it."]
    for id in (asked.result["approvalId"], "11155111-99", "x", "11155111-"):
        with pytest.raises(UnknownCall):
            performer.decide(id, True)
    assert SEND not in world.node.asked


async def test_an_approved_one_is_tried_again_before_it_is_sent(world: World) -> None:
    performer = world.performer(approval_above=10**15, agent="a2")
    assert (await performer.perform(tx("deposit()", value="1000"), world.community)).ok
    careful = world.performer(approval_above=0)
    asked = await careful.perform(tx("withdraw", 997), world.community)
    assert (await performer.perform(tx("withdraw", 900), world.community)).ok
    careful.decide(asked.result["approvalId"], True)
    settled = await careful.settle()
    assert [one.outcome.error for one in settled] == ["execution reverted: TooLittle(available=97, wanted=997)"]


async def test_secrets_are_in_nothing_that_is_said_or_logged(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    url = f"{world.node.url}/v2/S3cretKey99"
    leaking = f"cannot serve {url} for {KEY} {KEY[2:].upper()}, runner rnr_0123456789"
    performer = TxPerformer(settings(url), str(tmp_path), Redactor(["rnr_0123456789"]), agent_id="a1")
    said: list[Any] = []
    for method in ("eth_chainId", "eth_call", "eth_estimateGas", SEND):
        world.node.behaviours = {method: world.node.say(error={"code": -32000, "message": leaking})}
        done = await performer.perform(tx("inc()"), world.community)
        assert "cannot serve" in str(done.error)
        said.append([done, await performer.settle()])
    await performer.close()
    kept = b"".join(path.read_bytes() for path in (tmp_path / "wallets").iterdir())
    for secret in ("S3cretKey99", KEY[2:], KEY[2:].upper()):
        assert secret not in f"{said!r} {performer!r} {caplog.text}"
        assert secret.encode() not in kept
    assert "rnr_0123456789" not in repr(said)


async def test_a_secret_in_the_arguments_is_never_sent(world: World) -> None:
    for spelling in (KEY, KEY[2:].upper(), str(int(KEY, 16))):
        done = await world.performer().perform(tx("inc(uint256)", spelling), world.community)
        assert done.error == "Not sent: the action holds a value that is a secret of this runner."
    assert world.node.asked == []


async def test_the_chain_may_begin_anew_under_an_old_ledger(tmp_path: Path) -> None:
    for _ in range(2):
        async with embedded() as (chain, address):
            performer = TxPerformer(settings(chain.url), str(tmp_path))
            for _ in range(2):
                done = await performer.perform(tx("inc()"), community(address))
                assert done.ok, done
            await performer.close()
