"""Transactions that come to nothing, on the embedded chain: why is told, and no secret with it."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from tests.support.chain import KEY, settings, tx
from tests.support.chain_world import SEND, World
from tests.support.closing import closing
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base.redact import Redactor
from trunkline.core.faults import UnknownCall
from trunkline.runner.chain.book import FileBooks
from trunkline.runner.chain.performer import TxPerformer
from trunkline.runner.chain.settings import Caps

# One chain for all of them, since it takes a while to start and to stop; each has a contract and a home of its own.
pytestmark = pytest.mark.asyncio(loop_scope="module")


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
        async with closing(
            TxPerformer(settings(**{"url": world.node.url, **missing}), FileBooks(world.home))
        ) as performer:
            done = await performer.perform(tx("nope"), {})
            assert done.error == "Execution wallet or Alchemy key missing."
            assert await performer.settle() == []


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
    assert all(f"`execution.caps.{name}`" in str(error) for error in errors), outcomes
    assert world.node.asked.count(SEND) == 3 - len(errors) == (1 if name.startswith("day") else 0), outcomes
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


@pytest.mark.slow
async def test_a_node_that_hangs_is_given_up_in_time(world: World) -> None:
    for method in ("eth_chainId", "eth_call", SEND):
        world.node.behaviours = {method: world.node.hang}
        async with asyncio.timeout(PATIENCE_SECONDS):
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


async def test_a_key_that_is_none_is_told_without_it(world: World) -> None:
    done = await world.performer(key="0" * 64).perform(tx("inc()"), world.community)
    assert done.error == "`execution.privateKey` is not a private key."


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


async def test_an_approved_one_costs_no_more_than_what_was_shown(world: World) -> None:
    careful = world.performer(approval_above=0)
    for times, sent in ((1.5, True), (3, False)):
        asked = await careful.perform(tx("inc()"), world.community)
        (waiting,) = careful.pending()
        careful.decide(asked.result["approvalId"], True)
        block = await world.node.ask("eth_getBlockByNumber", "latest", False)
        dearer = hex(int(int(block["baseFeePerGas"], 16) * times))
        world.node.behaviours = {"eth_getBlockByNumber": world.node.say(result={**block, "baseFeePerGas": dearer})}
        (settled,) = await careful.settle()
        world.node.behaviours = {}
        careful.received()
        assert settled.outcome.ok is sent
        if sent:
            found = await world.node.ask("eth_getTransactionByHash", settled.outcome.hash)
            assert int(found["maxFeePerGas"], 16) * int(found["gas"], 16) <= int(waiting["fee"])
        else:
            assert f"wei by now, and a person approved {waiting['fee']}. Ask again." in str(settled.outcome.error)


async def test_secrets_are_in_nothing_that_is_said_or_logged(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    url = f"{world.node.url}/v2/S3cretKey99"
    leaking = f"cannot serve {url} for {KEY} {KEY[2:].upper()}, runner rnr_0123456789"
    performer = TxPerformer(settings(url), FileBooks(str(tmp_path)), Redactor(["rnr_0123456789"]), agent_id="a1")
    said: list[Any] = []
    async with closing(performer):
        for method in ("eth_chainId", "eth_call", "eth_estimateGas", SEND):
            world.node.behaviours = {method: world.node.say(error={"code": -32000, "message": leaking})}
            done = await performer.perform(tx("inc()"), world.community)
            assert "cannot serve" in str(done.error)
            said.append([done, await performer.settle()])
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
