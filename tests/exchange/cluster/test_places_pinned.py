"""Sessions whose agent is pinned to a node that is not there, as those see them who read their events elsewhere."""

from __future__ import annotations

import pytest

from tests.exchange.api_world import Reader
from tests.support.cluster_world import ClusterWorld, said
from tests.support.loop import until
from trunkline.core.events import UserMessage
from trunkline.exchange.api import events
from trunkline.exchange.api.app import application
from trunkline.exchange.cluster.nodes import Nodes

pytestmark = pytest.mark.process


async def test_what_happened_is_read_on_another_node_and_what_happens_when_the_agents_node_is_back(
    world: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "RETRY_SECONDS", 0.05)
    world.pinned["helper"] = ("a",)
    async with world.node("b") as b:
        async with world.node("a") as a:
            live = await a.switchboard.open("helper", "s1")
            await a.switchboard.submit(live, UserMessage("say one", id="m1"))
            await said(live)
        reader = Reader(application(b, local=True), "/api/sessions/s1/events", {})
        await until(lambda: "turn_ended" in reader.kinds)
        assert not reader.ended
        async with world.node("a") as a:
            live = await a.switchboard.find("s1")
            await a.switchboard.submit(live, UserMessage("say two", id="m2"))
            await until(lambda: reader.kinds.count("turn_ended") == 2)
        assert reader.kinds == 2 * ["turn_started", "text_delta", "turn_ended"]
        await reader.leave()


async def test_who_waits_for_the_agents_node_is_sent_elsewhere_by_a_node_that_is_cut_off(
    world: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "RETRY_SECONDS", 0.05)
    world.pinned["helper"] = ("a",)
    async with world.node("b") as b:
        async with world.node("a") as a:
            live = await a.switchboard.open("helper", "s1")
            await a.switchboard.submit(live, UserMessage("say one", id="m1"))
            await said(live)
        reader = Reader(application(b, local=True), "/api/sessions/s1/events", {})
        await until(lambda: "turn_ended" in reader.kinds)
        with monkeypatch.context() as patched:
            patched.setattr(Nodes, "is_held", property(lambda self: False))
            await until(lambda: reader.ended)
        await reader.leave()
