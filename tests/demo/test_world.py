"""What `trunkline up` shows, in this process: the chain, the network and the agent, until the report is written."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.demo import services, tester
from trunkline.demo.world import World
from trunkline.exchange.service import Service
from trunkline.exchange.supervisor import State, Supervisor
from trunkline.wires.sns.owner import Owner
from trunkline.wires.sns.wallet import Wallet

pytestmark = pytest.mark.slow


async def threads(http: httpx.AsyncClient, world: World) -> dict[str, dict[str, Any]]:
    communities = (await http.get(f"{world.network_url}/api/communities")).json()["communities"]
    found = (await http.get(f"{world.network_url}/api/communities/{communities[0]['slug']}/threads")).json()
    return {each["title"]: each for each in found["threads"]}


async def titled(http: httpx.AsyncClient, world: World, title: str) -> dict[str, Any]:
    """A thread, as soon as it is there."""
    while True:
        found = (await threads(http, world)).get(title)
        if found is not None:
            return found
        await asyncio.sleep(0.05)


async def test_the_agent_tests_asks_and_reports_and_begins_again_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "CYCLE_SECONDS", 0.05)
    for _ in range(2):
        await seen_through(World(str(tmp_path), network_port=0))


async def seen_through(world: World) -> None:
    """Run all of it until the report is there."""
    stop, reachable = asyncio.Event(), asyncio.Event()
    troubles: list[tuple[str, State, str]] = []

    def told(service: Service, state: State, detail: str) -> None:
        if (service.name, state) == ("agent", "reachable"):
            reachable.set()
        elif state in ("crashed", "given up", "stuck"):
            troubles.append((service.name, state, detail))

    parts: list[Service] = [services.ChainService(world), services.NetworkService(world), services.AgentService(world)]
    running = asyncio.create_task(Supervisor(parts, told).run(stop))
    try:
        async with httpx.AsyncClient(timeout=PATIENCE_SECONDS) as http, asyncio.timeout(PATIENCE_SECONDS):
            await reachable.wait()
            await answered(http, world)
            assert (await titled(http, world, tester.REPORT))["type"] == "REPORT_TO_HUMAN"
            tried = (await threads(http, world))[tester.HYPOTHESIS]
            comments = (await http.get(f"{world.network_url}/api/threads/{tried['id']}")).json()["comments"]
            assert [each["body"].split(";")[0] for each in comments] == ["Deposited 1000 wei", "Deposited 999 wei"]
    finally:
        stop.set()
        await running
        world.chain.close()
    assert not troubles


async def answered(http: httpx.AsyncClient, world: World) -> None:
    """Be the owner, and answer what is asked, if it was not answered before."""
    request = await titled(http, world, tester.REQUEST)
    api = Owner(http, world.network_url, Wallet(world.owner_key))
    await api.sign_in()
    await api.call("POST", f"/api/threads/{request['id']}/comments/human", {"body": "No: 2 wei would be right."})


def test_what_a_killed_process_has_left_of_the_runner_is_gone_with_the_next_one(tmp_path: Path) -> None:
    left = tmp_path / "runner" / "wallets"
    left.mkdir(parents=True)
    (left / "nonces").write_text("of a chain that is no more")
    assert services._emptied(str(tmp_path / "runner")) == str(tmp_path / "runner")
    assert list((tmp_path / "runner").iterdir()) == []
