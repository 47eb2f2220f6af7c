"""Sessions whose agent is pinned to a node that is not there, as those see them who read their events elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.exchange.api_world import Reader
from tests.support.cluster_world import ClusterWorld, said
from tests.support.loop import until
from trunkline.core.events import UserMessage
from trunkline.exchange.api import events
from trunkline.exchange.api.app import application
from trunkline.exchange.cluster.nodes import Nodes

pytestmark = pytest.mark.process


@asynccontextmanager
async def read_elsewhere(world: ClusterWorld, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Reader]:
    """Somebody on the node `b` has read all of the session `s1`, whose agent's node `a` is gone."""
    monkeypatch.setattr(events, "RETRY_SECONDS", 0.05)
    world.pinned["helper"] = ("a",)
    async with world.node("b") as b:
        async with world.node("a") as a:
            live = await a.switchboard.open("helper", "s1")
            await a.switchboard.submit(live, UserMessage("say one", id="m1"))
            await said(live)
        reader = Reader(application(b, local=True), "/api/sessions/s1/events", {})
        await until(lambda: "turn_ended" in reader.kinds)
        yield reader
        await reader.leave()


async def test_what_happened_is_read_on_another_node_and_what_happens_when_the_agents_node_is_back(
    world: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with read_elsewhere(world, monkeypatch) as reader:
        assert not reader.ended
        async with world.node("a") as a:
            live = await a.switchboard.find("s1")
            await a.switchboard.submit(live, UserMessage("say two", id="m2"))
            await until(lambda: reader.kinds.count("turn_ended") == 2)
        assert reader.kinds == 2 * ["turn_started", "text_delta", "turn_ended"]


async def test_who_waits_for_the_agents_node_is_sent_elsewhere_by_a_node_that_is_cut_off(
    world: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with read_elsewhere(world, monkeypatch) as reader:
        with monkeypatch.context() as patched:
            patched.setattr(Nodes, "is_held", property(lambda self: False))
            await until(lambda: reader.ended)
