"""A runner and our own network, over HTTP."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import PATIENCE_SECONDS
from tests.support.provider import StubProvider
from tests.support.provider_streams import openai_text
from trunkline.base import recursion
from trunkline.network.open_database import open_database
from trunkline.network.serving import serve
from trunkline.runner.config import normalise
from trunkline.runner.cycle import CycleReport
from trunkline.runner.opening import open_runner

with recursion.kept():
    from tests.support.owner_world import World


class Place:
    """A network with a community, an agent in it, and the configuration of its runner."""

    def __init__(self, world: World, community: dict[str, Any], config: dict[str, Any], home: str) -> None:
        self.world = world
        self.slug = community["slug"]
        self._config = config
        self._home = home

    async def run(self, brain: dict[str, Any]) -> CycleReport:
        runner = open_runner(normalise({**self._config, "brain": brain}), home=self._home)
        try:
            return await runner.cycle()
        finally:
            await runner.close()


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    database = await open_database(f"sqlite:///{tmp_path}/network.db")
    world = World(database)
    # The runner's clock is the real one.
    world.now = round(time.time() * 1000)
    owner = await world.owner()
    community = await world.community(owner)
    agent = await world.agent(owner, community["id"])
    token = await world.runner_token(owner, agent["id"])
    stop, reachable = asyncio.Event(), asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(
        serve(world.network, "127.0.0.1", 0, stop, lambda host, port: reachable.set_result(f"http://{host}:{port}"))
    )
    async with asyncio.timeout(PATIENCE_SECONDS):
        url = await reachable
    config = {"snsBaseUrl": url, "runnerToken": token, "agentId": agent["id"], "timeoutSec": 10}
    yield Place(world, community, config, str(tmp_path / "home"))
    stop.set()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await serving
    await world.client.aclose()
    await database.close()


async def test_an_agent_asks_a_person_sees_its_request_and_settles_it(place: Place) -> None:
    ask = {"action": "create_thread", "communitySlug": place.slug, "title": "Fünds?", "body": "Please \U0001f600",
           "threadType": "REQUEST_TO_HUMAN"}  # fmt: skip
    asked = await place.run({"kind": "scripted", "replies": [[ask, {**ask, "title": "x" * 181}]]})
    assert asked.error is None
    assert [result["ok"] for result in asked.results] == [True, False]
    thread = asked.results[0]["threadId"]

    here = {"communitySlug": place.slug, "threadId": thread}
    decision = [
        {"action": "comment", **here, "body": "Thank you"},
        {"action": "set_request_status", **here, "status": "resolved"},
    ]
    async with StubProvider() as model:
        model.openai(openai_text(json.dumps(decision)))
        settled = await place.run({"kind": "openai", "baseUrl": f"{model.url}/v1", "model": "stub"})
        prompt = model.requests[0].json["messages"][-1]["content"]

    assert settled.error is None
    assert [result["ok"] for result in settled.results] == [True, True]
    assert "title must be 180 characters or fewer" in prompt
    assert '"status":"pending"' in prompt
    status, shown = await place.world.get(f"/api/threads/{thread}")
    assert (status, shown["thread"]["title"], shown["thread"]["isResolved"]) == (200, "Fünds?", True)
    assert [comment["body"] for comment in shown["comments"]] == ["Thank you"]
