"""Nodes that are busy with a session, or with their own lease, just when something happens to it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support.cluster_world import ClusterWorld, said, words
from tests.support.exchange_world import CommandedConversation
from tests.support.loop import until
from trunkline.core.agent import OpenRequest
from trunkline.core.events import UserMessage
from trunkline.core.faults import StoreUnavailable
from trunkline.exchange.cluster import cluster
from trunkline.exchange.cluster.cluster import CUT_OFF
from trunkline.exchange.cluster.nodes import Nodes
from trunkline.exchange.messages import QueuedMessage
from trunkline.store.jetstream import batches

pytestmark = pytest.mark.process


async def test_who_comes_between_the_parts_of_a_batch_hears_all_of_it(
    world: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "PART_BYTES", 1000)
    async with world.nodes("a", "b") as (a, b):
        live = await a.switchboard.open("helper", "s1")
        assert a.cluster is not None
        publish, has_begun, may_go_on = a.cluster.stream.publish, asyncio.Event(), asyncio.Event()

        async def slowly(*given: Any, **conditions: Any) -> int:
            if has_begun.is_set():
                await may_go_on.wait()
            number = await publish(*given, **conditions)
            has_begun.set()
            return number

        monkeypatch.setattr(a.cluster.stream, "publish", slowly)
        # For now nothing comes after it by which it could be seen that it is missing.
        await a.switchboard.submit(live, UserMessage("wait; say it;" + "x" * 1500, id="m1"))
        await has_begun.wait()
        theirs = await b.switchboard.find("s1")
        assert theirs.is_followed
        may_go_on.set()
        await until(lambda: theirs.session.turn == 1)
        world.agents["helper"].gate.set()
        assert words(await said(theirs)) == "it"


async def test_a_session_that_was_lost_while_it_was_begun_is_not_kept_by_this_node(
    world: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "REJOIN_SECONDS", 0.01)
    async with world.nodes("a", "b") as (a, b):
        assert a.cluster is not None
        nodes, agent = a.cluster.nodes, world.agents["helper"]
        opened = agent.open

        async def asleep_meanwhile(request: OpenRequest) -> CommandedConversation:
            nodes._lose("it was asleep")
            # It lets go of what it has, and is back before the agent is.
            await until(lambda: a.cluster is not None and a.cluster.nodes is not nodes)
            return await opened(request)

        with monkeypatch.context() as patched:
            patched.setattr(agent, "open", asleep_meanwhile)
            # Nobody would tell its clients that another node has it now.
            with pytest.raises(StoreUnavailable):
                await a.switchboard.open("helper", "s1")
        assert a.switchboard.live("s1") is None
        assert not agent.is_open
        ours = await b.switchboard.open("helper", "s1")
        assert not ours.is_followed
        theirs = await a.switchboard.open("helper", "s1")
        await b.switchboard.submit(ours, UserMessage("say one", id="m1"))
        assert words(await said(theirs)) == "one"


async def test_a_session_that_is_lost_before_its_log_is_read_can_be_woken_again(
    world: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world.node("a") as a:
        await a.switchboard.open("helper", "s1")
    async with world.node("b") as b:
        assert b.cluster is not None
        owned, waiting = b.cluster.owned, b.switchboard.messages.waiting

        async def lost_meanwhile(session: str) -> list[QueuedMessage]:
            owned.clear()
            return await waiting(session)

        with monkeypatch.context() as patched:
            patched.setattr(b.switchboard.messages, "waiting", lost_meanwhile)
            with pytest.raises(StoreUnavailable) as refused:
                await b.switchboard.find("s1")
            # Or what waits in it would be given up.
            assert refused.value.retryable
        assert not (await b.switchboard.find("s1")).is_followed


async def test_what_a_node_says_of_itself_is_said_although_it_is_just_saying_that_it_is_alive(
    world: ClusterWorld,
) -> None:
    async with world.nodes("a", "b") as (a, b):
        assert a.cluster is not None
        assert b.cluster is not None
        nodes = a.cluster.nodes
        await asyncio.gather(nodes._say(), nodes.update(draining=True, sessions=7))
        await b.cluster.nodes.look()
        told = b.cluster.nodes.others["a"]
        assert (told.draining, told.sessions) == (True, 7)


async def test_a_node_that_has_just_come_may_run_what_it_alone_can(world: ClusterWorld) -> None:
    world.pinned["helper"] = ("b",)
    async with world.node("a") as a, world.node("b"):
        assert a.cluster is not None
        # As of the last look.
        a.cluster.nodes.others = {}
        live = await a.switchboard.open("helper", "s1")
        assert live.is_followed


async def test_a_node_that_is_cut_off_says_so_to_whoever_reads_a_session(
    world: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world.nodes("a", "b") as (a, b):
        await a.switchboard.open("helper", "s1")
        monkeypatch.setattr(Nodes, "is_held", property(lambda self: False))
        with pytest.raises(StoreUnavailable) as refused:
            await b.switchboard.awaited(["s1"])
        assert str(refused.value).startswith(CUT_OFF)
