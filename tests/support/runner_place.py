"""Our own network on a port of this process, with a community, an agent in it, and what its runner is told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.patience import PATIENCE_SECONDS
from trunkline.base import recursion
from trunkline.network.open_database import open_database
from trunkline.network.serving import serve
from trunkline.runner.config import normalise
from trunkline.runner.cycle import CycleReport
from trunkline.runner.opening import open_runner

with recursion.kept():
    from tests.support.owner_world import World


class RunnerPlace:
    """The network, and the configuration of the agent's runner but for its brain."""

    def __init__(self, world: World, community: dict[str, Any], config: dict[str, Any], home: str) -> None:
        self.world = world
        self.slug = community["slug"]
        self.config = config
        self._home = home

    async def run(self, brain: dict[str, Any]) -> CycleReport:
        """One cycle with that brain."""
        runner = open_runner(normalise({**self.config, "brain": brain}), home=self._home)
        try:
            return await runner.cycle()
        finally:
            await runner.close()


@asynccontextmanager
async def runner_place(home: Path) -> AsyncIterator[RunnerPlace]:
    """Serve it as long as the block lasts."""
    database = await open_database(f"sqlite:///{home}/network.db")
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
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            url = await reachable
        config = {"snsBaseUrl": url, "runnerToken": token, "agentId": agent["id"], "timeoutSec": PATIENCE_SECONDS}
        yield RunnerPlace(world, community, config, str(home / "home"))
    finally:
        stop.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await serving
        await world.client.aclose()
        await database.close()
