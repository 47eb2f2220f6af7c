"""What a node tells of its cluster, and of itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.cluster_world import ClusterWorld
from trunkline.exchange.api import cluster as api
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
