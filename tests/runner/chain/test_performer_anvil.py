"""Transactions on a node of somebody else's: what must not depend on a chain of our own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.support.anvil import KEY, OTHER_KEY, Anvil, anvil
from tests.support.chain import Node, community, settings, tx
from trunkline.demo.chain.artefacts import artefact
from trunkline.runner.chain.book import FileBooks
from trunkline.runner.chain.performer import TxPerformer

pytestmark = [pytest.mark.process, pytest.mark.slow]


@pytest.fixture(scope="module")
def node() -> Iterator[Anvil]:
    with anvil() as running:
        yield running


@pytest.fixture
def place(node: Anvil) -> dict[str, Any]:
    return community(node.deploy(artefact().bytecode))


class Performers(Protocol):
    def __call__(self, url: str, home: Path, key: str = KEY, **more: Any) -> TxPerformer:
        """One at a node. It is closed after the test, however that ends: it holds sockets, and filters of loggers."""


@pytest.fixture
async def performer() -> AsyncIterator[Performers]:
    async with AsyncExitStack() as stack:

        def made(url: str, home: Path, key: str = KEY, **more: Any) -> TxPerformer:
            agent = TxPerformer(settings(url, key, **more), FileBooks(str(home)), agent_id="a1")
            stack.push_async_callback(agent.close)
            return agent

        yield made


async def test_calls_transactions_money_and_refusals(
    performer: Performers, node: Anvil, place: dict[str, Any], tmp_path: Path
) -> None:
    agent = performer(node.url, tmp_path)
    done = await agent.perform(tx("inc(uint256)", 41), place)
    assert done.ok, done
    assert node.ask("eth_getTransactionReceipt", done.hash)["gasUsed"] == hex(int(done.result["gasUsed"]))
    assert (await agent.perform(tx("count"), place)).result["result"] == "41"
    paid = await agent.perform(tx("deposit()", value="1000"), place)
    assert paid.ok, paid
    assert node.ask("eth_getBalance", place["contracts"][0]["address"], "latest") == hex(1000)
    for action, text in (
        (tx("inc(uint256)", 0), "execution reverted: n=0"),
        (tx("withdraw", 1000), "execution reverted: TooLittle(available=997, wanted=1000)"),
        (tx("inc(uint256)", str(2**256 - 1)), "execution reverted: panic 0x11 (an arithmetic overflow or underflow)"),
        (tx("nope"), "Function not allowed."),
        (tx("inc()", contractAddress="0x" + "22" * 20), "Contract address not allowed."),
    ):
        assert (await agent.perform(action, place)).result == {"error": text}
    mainnet = performer(node.url, tmp_path, chains={"Sepolia": 1})
    assert "speaks for chain 11155111" in str((await mainnet.perform(tx("inc()"), place)).error)


async def test_two_at_once_with_one_key_send_eight_and_all_are_mined(
    performer: Performers, node: Anvil, place: dict[str, Any], tmp_path: Path
) -> None:
    first, second = performer(node.url, tmp_path), performer(node.url, tmp_path)
    done = await asyncio.gather(*(one.perform(tx("inc()"), place) for one in (first, second) for _ in range(4)))
    assert all(one.ok for one in done), done
    nonces = {node.ask("eth_getTransactionByHash", one.hash)["nonce"] for one in done}
    assert len(nonces) == 8
    assert (await first.perform(tx("count"), place)).result["result"] == "8"


async def test_strangers_with_the_same_key_do_not_stop_each_other(
    performer: Performers, node: Anvil, place: dict[str, Any], tmp_path: Path
) -> None:
    """All three sign with the same nonce; one of them gets into a block before the node hears of the others."""
    names = ("one", "two", "three")
    all_signed, turn = asyncio.Barrier(len(names)), asyncio.Lock()
    async with Node.before(node.url) as before:

        async def one_after_another(asked: dict[str, Any]) -> bytes:
            if before.asked.count("eth_sendRawTransaction") <= len(names):
                await all_signed.wait()
            async with turn:
                answer = await before.forward(asked)
                if b'"result"' in answer:
                    await before.ask("evm_mine")
                return answer

        before.behaviours["eth_sendRawTransaction"] = one_after_another
        agents = [performer(before.url, tmp_path / name) for name in names]
        done = await asyncio.gather(*(agent.perform(tx("inc()"), place) for agent in agents))
        assert all(one.ok for one in done), done
        assert before.asked.count("eth_sendRawTransaction") > len(names)
        assert (await agents[0].perform(tx("count"), place)).result["result"] == "3"


async def test_a_lost_answer_is_found_by_its_hash(
    performer: Performers, node: Anvil, place: dict[str, Any], tmp_path: Path
) -> None:
    async with Node.before(node.url) as before:
        before.behaviours["eth_sendRawTransaction"] = before.lose_answer
        agent = performer(before.url, tmp_path)
        done = await agent.perform(tx("inc()"), place)
        assert done.ok, done
        assert before.asked.count("eth_sendRawTransaction") == 1


async def test_what_is_mined_later_is_settled_later_also_when_it_is_undone(
    performer: Performers, node: Anvil, place: dict[str, Any], tmp_path: Path
) -> None:
    async with Node.before(node.url) as before:

        async def estimate_without_what_waits(asked: dict[str, Any]) -> bytes:
            return await before.forward(asked | {"params": [*asked["params"], "latest"]})

        before.behaviours["eth_estimateGas"] = estimate_without_what_waits
        depositor = performer(before.url, tmp_path, OTHER_KEY)
        assert (await depositor.perform(tx("deposit()", value="1000"), place)).ok
        depositor.received()
        await depositor.close()
        agent = performer(before.url, tmp_path, OTHER_KEY, receipt_seconds=0.3)
        node.ask("evm_setAutomine", False)
        try:
            late = [await agent.perform(tx("withdraw", 997), place) for _ in range(2)]
            assert [(one.ok, one.result.get("state")) for one in late] == [(False, "pending"), (False, "pending")]
            assert await agent.settle() == []
            node.ask("evm_mine")
        finally:
            node.ask("evm_setAutomine", True)
        await agent.close()
    # Another process: the first one worked, and left nothing for the second.
    agent = performer(node.url, tmp_path, OTHER_KEY)
    first, second = await agent.settle()
    assert first.outcome.ok
    assert first.outcome.hash == late[0].hash
    assert second.outcome.hash == late[1].hash
    assert not second.outcome.ok
    assert second.outcome.error == "execution reverted: TooLittle(available=0, wanted=997)"
    assert second.outcome.result["status"] == 0
    agent.received()
    assert await agent.settle() == []
    assert (await agent.perform(tx("inc()"), place)).ok


async def test_one_that_another_took_the_place_of_is_told_to_be_replaced(
    performer: Performers, node: Anvil, place: dict[str, Any], tmp_path: Path
) -> None:
    async with Node.before(node.url) as before:
        agent = performer(before.url, tmp_path)
        before.behaviours["eth_sendRawTransaction"] = before.lose_request
        lost = await agent.perform(tx("inc(uint256)", 5), place)
        assert lost.result["state"] == "unknown"
        agent.received()
        before.behaviours.clear()
        assert (await agent.perform(tx("inc()"), place)).ok
        agent.received()
        settled = await agent.settle()
        assert [(one.outcome.hash, one.outcome.result["state"]) for one in settled] == [(lost.hash, "replaced")]
        assert (await agent.perform(tx("count"), place)).result["result"] == "1"
