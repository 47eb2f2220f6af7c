"""What a node tells of its cluster, and of itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from tests.support.cluster_world import ClusterWorld
from tests.support.loop import until
from trunkline.core.events import UserMessage
from trunkline.exchange.api import cluster as api
from trunkline.exchange.api.app import application
from trunkline.exchange.cluster.cluster import CUT_OFF
from trunkline.exchange.cluster.nodes import Nodes
from trunkline.exchange.exchange import Exchange

pytestmark = pytest.mark.process


async def status(exchange: Exchange) -> Any:
    call: Any = SimpleNamespace(exchange=exchange)
    return await api.status(call)


async def test_a_node_tells_of_all_that_are_alive_and_how_many_sessions_each_has(world: ClusterWorld) -> None:
    async with world.nodes("a", "b") as (a, b):
        await a.switchboard.open("helper", "s1")
        await b.switchboard.find("s1")
        found = await status(a)
        assert (found["node"], found["ready"], found["why"]) == ("a", True, "")
        assert [(node["name"], node["ready"], node["draining"]) for node in found["nodes"]] == [
            ("a", True, False),
            ("b", True, False),
        ]
        assert found["nodes"][0]["sessions"] == 1


async def figures(exchange: Exchange) -> list[str]:
    transport = httpx.ASGITransport(application(exchange, local=True))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        return (await client.get("/metrics")).text.splitlines()


async def test_a_session_that_is_watched_on_another_node_is_counted_where_its_agent_is(world: ClusterWorld) -> None:
    async with world.nodes("a", "b") as (a, b):
        live = await a.switchboard.open("helper", "s1")
        await a.switchboard.submit(live, UserMessage("wait"))
        theirs = await b.switchboard.find("s1")
        await until(lambda: theirs.session.turn == 1)
        for exchange, is_there in ((a, 1), (b, 0)):
            lines = await figures(exchange)
            assert f"trunkline_sessions_awake {is_there}" in lines
            assert f"trunkline_turns_running {is_there}" in lines
            assert f"trunkline_sessions_followed {1 - is_there}" in lines


async def test_a_node_that_is_cut_off_says_so_also_when_a_server_answers_it(
    world: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world.node("a") as a:
        monkeypatch.setattr(Nodes, "is_held", property(lambda self: False))
        found = await status(a)
        monkeypatch.undo()
        assert not found["ready"]
        assert found["why"].startswith(CUT_OFF)
        assert [(node["name"], node["ready"]) for node in found["nodes"]] == [("a", False)]
