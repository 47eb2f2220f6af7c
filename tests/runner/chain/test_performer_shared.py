"""Transactions of an agent that launchers share, on the embedded chain: one of them sends, and the next one knows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import psycopg
import pytest

from tests.support.chain import settings, tx
from tests.support.chain_world import RECEIPT, SEND, World
from tests.support.closing import closing
from tests.support.shared_books import GivenLease, shared_books
from trunkline.runner.chain.performer import TxPerformer
from trunkline.runner.chain.settings import Caps
from trunkline.runner.holding import LeaseLost

# One chain for all of them, since it takes a while to start and to stop; each has a contract of its own.
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]


@asynccontextmanager
async def launcher(world: World, url: str, lease: GivenLease, **more: Any) -> AsyncIterator[TxPerformer]:
    """One launcher's performer of the agent's transactions."""

    async def check() -> None:
        if not lease.good:
            raise LeaseLost

    with ExitStack() as stack:
        books = await asyncio.to_thread(stack.enter_context, shared_books(url, time.time, lease))
        performer = TxPerformer(settings(world.node.url, **more), books, agent_id="a1", check=check)
        async with closing(performer):
            yield performer


async def test_what_one_launcher_sent_the_next_one_tells_and_does_not_send_again(
    world: World, postgres_url: str
) -> None:
    lease = GivenLease()
    async with launcher(world, postgres_url, lease) as first, launcher(world, postgres_url, GivenLease()) as second:
        world.node.behaviours[RECEIPT] = world.node.hang
        sending = asyncio.create_task(first.perform(tx("inc()"), world.community))
        await world.node.reached(RECEIPT)
        # It is deposed: what it learns now is not its to keep.
        lease.good = False
        sending.cancel()
        await asyncio.wait({sending})
        known = first.in_flight
        assert known is not None
        del world.node.behaviours[RECEIPT]
        settled = await second.settle()
        assert [(one.outcome.ok, one.outcome.hash) for one in settled] == [(True, known.hash)]
        second.received()
        assert await second.settle() == []
        with pytest.raises(LeaseLost):
            await first.perform(tx("inc()"), world.community)
    assert world.node.asked.count(SEND) == 1
    assert await world.count() == 1


async def test_whoever_is_deposed_between_signing_and_sending_does_not_send(world: World, postgres_url: str) -> None:
    lease = GivenLease()

    class Last(GivenLease):
        """Good for what is written down, and for nothing that is sent."""

        def enter(self, tx: Any) -> None:
            return None

    written = Last()
    async with launcher(world, postgres_url, written) as first, launcher(world, postgres_url, lease) as second:
        written.good = False
        with pytest.raises(LeaseLost):
            await first.perform(tx("inc(uint256)", 5), world.community)
        assert SEND not in world.node.asked
        lease.fence = 2
        with psycopg.connect(postgres_url) as connection:
            connection.execute("UPDATE runner_lease SET fence = 2")
        # It may have been sent, as far as anybody else can tell; and its nonce serves the next one.
        assert [one.outcome.result["state"] for one in await second.settle()] == ["unknown"]
        second.received()
        assert (await second.perform(tx("inc()"), world.community)).ok
        second.received()
        assert [one.outcome.result["state"] for one in await second.settle()] == ["replaced"]
    assert await world.count() == 1


async def test_the_allowance_of_a_day_is_one_for_all_launchers(world: World, postgres_url: str) -> None:
    caps = Caps(day_value=3)
    async with (
        launcher(world, postgres_url, GivenLease(), caps=caps) as first,
        launcher(world, postgres_url, GivenLease(), caps=caps) as second,
    ):
        assert (await first.perform(tx("deposit()", value="2"), world.community)).ok
        refused = await second.perform(tx("deposit()", value="2"), world.community)
        assert not refused.ok
        assert world.node.asked.count(SEND) == 1
