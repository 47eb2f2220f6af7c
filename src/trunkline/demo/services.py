"""The demonstration as services: a chain, a network, and an agent that tests a contract."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
from collections.abc import Callable

from trunkline.base import http as base_http
from trunkline.base import paths
from trunkline.core.faults import AgentFailed
from trunkline.demo.chain.artefacts import artefact
from trunkline.demo.settling import settle
from trunkline.demo.world import World

#: Between two cycles of the agent: short, since somebody is watching.
CYCLE_SECONDS = 4.0

_BRAIN = "trunkline.demo.tester:Tester"
#: The folder of the home in which its runner keeps what it knows.
_RUNNER = "runner"


class ChainService:
    """A chain in this process, with the contract on it."""

    name = "chain"

    def __init__(self, world: World) -> None:
        self._world = world

    @property
    def where(self) -> str:
        return self._world.chain.where

    @property
    def about(self) -> str:
        return self._world.chain.about

    @property
    def trial(self) -> str:
        return self._world.chain.trial

    async def run(self, stop: asyncio.Event, reachable: Callable[[], None]) -> None:
        world = self._world

        def begun() -> None:
            world.chain_up.set()
            reachable()

        if world.vault is None:
            world.vault = await world.chain.deploy(artefact("Vault").bytecode)
        try:
            await world.chain.run(stop, begun)
        finally:
            world.chain_up.clear()


class NetworkService:
    """The network, with its pages. Its database is kept from one run to the next."""

    name = "network"

    def __init__(self, world: World) -> None:
        self._world = world

    @property
    def where(self) -> str:
        return self._world.network_url

    @property
    def about(self) -> str:
        return "the agent social network, for your browser"

    @property
    def trial(self) -> str:
        return (
            f"open {self.where} in a browser; to be the demo's owner, sign in with the key {self._world.owner_key}\n"
            "    (it belongs to the chain in this process, everybody knows it, and it is worth nothing)"
        )

    async def run(self, stop: asyncio.Event, reachable: Callable[[], None]) -> None:
        from trunkline.base import paths
        from trunkline.network.network import Network, NetworkSettings
        from trunkline.network.open_database import open_database
        from trunkline.network.serving import serve

        world = self._world
        paths.ensure_dir(world.home)

        def begun(host: str, port: int) -> None:
            world.network_url = f"http://{host}:{port}"
            world.network_up.set()
            reachable()

        database = await open_database(f"sqlite:///{os.path.join(world.home, 'network.db')}")
        try:
            network = Network(database, NetworkSettings(home=world.home))
            await serve(network, "127.0.0.1", _free_port(world.network_port), stop, begun)
        finally:
            world.network_up.clear()
            await database.close()


class AgentService:
    """The agent: one cycle after the other, as a runner has them."""

    name = "agent"

    def __init__(self, world: World) -> None:
        self._world = world
        self._slug = ""

    @property
    def where(self) -> str:
        return f"{self._world.network_url}/communities/{self._slug}"

    @property
    def about(self) -> str:
        return "the agent at work in the network: look here first"

    @property
    def trial(self) -> str:
        return "watch it there; it asks you something, which waits for you under Requests"

    async def run(self, stop: asyncio.Event, reachable: Callable[[], None]) -> None:
        stopping = asyncio.create_task(stop.wait(), name="wait for stop")
        working = asyncio.create_task(self._work(reachable), name="the demonstration's agent")
        try:
            await asyncio.wait({stopping, working}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            working.cancel()
            await asyncio.wait({working})
        if not working.cancelled():
            working.result()

    async def _work(self, reachable: Callable[[], None]) -> None:
        from trunkline.runner.config import normalise
        from trunkline.runner.opening import open_runner

        world = self._world
        await world.ready()
        if world.vault is None:
            raise AgentFailed("There is no contract to test.")
        async with base_http.client(secure=False) as http:
            settled = await settle(http, world.network_url, world.owner_key, world.vault)
        self._slug = settled.slug
        reachable()
        home = await asyncio.to_thread(_emptied, os.path.join(world.home, _RUNNER))
        config = normalise({
            "snsBaseUrl": world.network_url,
            "agentId": settled.agent_id,
            "runnerToken": settled.runner_token,
            "brain": {"kind": "agent", "name": _BRAIN},
            "execution": {"rpcUrl": world.chain.url, "privateKey": world.agent_key},
        })  # fmt: skip
        runner = open_runner(config, home=home)
        try:
            while True:
                report = await runner.cycle()
                if report.error is not None:
                    raise AgentFailed(f"Its cycle failed: {report.error}")
                await asyncio.sleep(CYCLE_SECONDS)
        finally:
            await runner.close()
            await asyncio.to_thread(shutil.rmtree, home, ignore_errors=True)


def _emptied(folder: str) -> str:
    """The same folder, with nothing in it.

    What a runner keeps of the chain must begin anew with every process, as the chain does. It lies in the home and not
    somewhere temporary: what a process leaves that was killed, the next one finds there.
    """
    shutil.rmtree(folder, ignore_errors=True)
    paths.ensure_dir(folder)
    return folder


def _free_port(wanted: int) -> int:
    """The port, if nobody listens there; else any."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            return 0
    return wanted
