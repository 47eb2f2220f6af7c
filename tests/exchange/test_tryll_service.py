"""The Tryll server of `trunkline up`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from unittest import mock

import pytest

from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_served import echo
from trunkline.exchange.service import Service
from trunkline.exchange.supervisor import Pace, State, Supervisor
from trunkline.exchange.tryll_service import TryllService
from trunkline.models import fetch
from trunkline.wires.tryll.drive import Tryll
from trunkline.wires.tryll.messages import ModelStatus, TurnStatus


def port_of(service: Service) -> int:
    return int(service.where.rpartition(":")[2])


@asynccontextmanager
async def running(service: TryllService, pace: Pace | None = None) -> AsyncIterator[list[tuple[State, str]]]:
    """Supervised, reachable, and stopped with the block; gives what is told of it."""
    stop, reachable = asyncio.Event(), asyncio.Event()
    told: list[tuple[State, str]] = []

    def report(_: Service, state: State, detail: str) -> None:
        told.append((state, detail))
        if state == "reachable":
            reachable.set()

    supervisor = Supervisor([service], report, pace)
    task = asyncio.create_task(supervisor.run(stop))
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await reachable.wait()
        yield told
    finally:
        stop.set()
        await task
    assert not supervisor.stuck


async def test_agents_answer_there_and_no_model_is_fetched_before_it_is_used() -> None:
    service = TryllService(0)
    with mock.patch.object(fetch, "pull", side_effect=AssertionError("nobody asked for it")):
        async with running(service) as told, Tryll("127.0.0.1", port_of(service)) as tryll:
            agent = await tryll.create_agent(echo(), default_model="any")
            assert (await agent.ask("Anybody?")).text == "You said: Anybody?"
            listed = {each.name: each.status for each in await tryll.list_models()}
            assert listed["smollm2-135m"] == listed["minilm-l6"] == ModelStatus.ABSENT
            assert [name for name in listed if name.startswith("agent:")] == ["agent:echo"]
    assert [state for state, _ in told] == ["starting", "reachable", "stopped"]


async def test_a_port_that_is_taken_is_left_to_its_owner() -> None:
    first = TryllService(0)
    async with running(first):
        second = TryllService(port_of(first))
        async with running(second):
            assert port_of(second) not in (0, port_of(first))
            # Whoever follows the advice reaches this one.
            assert second.trial == f"trunkline tryll chat {second.address} --graph npc"


async def test_a_port_for_websockets_that_is_taken_is_left_to_its_owner_and_the_real_one_is_told() -> None:
    first = TryllService(0, websocket=("127.0.0.1", 0))
    async with running(first):
        taken = int(first.where.rpartition(":")[2].removesuffix("/"))
        assert first.where == f"{first.address} and ws://127.0.0.1:{taken}/"
        second = TryllService(0, websocket=("127.0.0.1", taken))
        async with running(second):
            there = second.where.partition(" and ")[2]
            assert f":{taken}/" not in there
            async with Tryll(there) as tryll:
                assert (await (await tryll.create_agent(echo(), default_model="any")).ask("Hi")).text == "You said: Hi"


@pytest.mark.slow
@pytest.mark.parametrize("pace", [Pace(), Pace(stopping=0.05)], ids=["in time", "in a hurry"])
async def test_it_ends_with_turns_under_way(pace: Pace) -> None:
    service = TryllService(0)
    async with running(service, pace) as told:
        tryll = await Tryll("127.0.0.1", port_of(service), reconnect=None).connect()
        agent = await tryll.create_agent(echo(), default_model="mock-slow")
        reply = agent.stream(" ".join(["word"] * 500), check=False)
        assert await anext(reply)
        begun = asyncio.get_running_loop().time()
    assert asyncio.get_running_loop().time() - begun < 4
    assert told[-1][0] == "stopped" or pace.stopping < 1
    if pace.stopping >= 1:
        assert (await reply.result()).status == TurnStatus.CANCELLED
    await tryll.close()
