"""What is going on in the whole exchange."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.exchange.api_world import FAKE, Reader, token, world
from tests.support.loop import until
from trunkline.core.events import Failed, TurnEnded
from trunkline.exchange.api.changes import SharedLook
from trunkline.exchange.people import People
from trunkline.exchange.settings import AgentBudget


class Beside:
    """A service that does nothing but say where it would be."""

    about = "what it is for"

    def __init__(self, name: str, where: str, trial: str) -> None:
        self.name, self.where, self.trial = name, where, trial

    async def run(self, stop: Any, reachable: Any) -> None: ...


async def test_what_runs_what_waits_and_what_failed_is_told(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        quiet = (await net.get("/api/overview", who="observer")).json()
        assert (quiet["approvals"], quiet["failed"], quiet["running"]) == ([], [], [])
        assert [agent["name"] for agent in quiet["agents"]] == [FAKE, "echo", "broken"]
        session = await net.session()
        await net.say(session, "Work on it")
        await until(lambda: net.fake.busy)
        (running,) = (await net.get("/api/overview")).json()["running"]
        assert (running["id"], running["message"], running["state"]) == (session, "Work on it", "running")
        net.fake.say(Failed("provider", "The model is gone."), TurnEnded("error"))

        async def is_told() -> bool:
            return bool((await net.get("/api/overview")).json()["failed"])

        while not await is_told():  # noqa: ASYNC110  (nobody tells)
            await asyncio.sleep(0.01)
        (failed,) = (await net.get("/api/overview")).json()["failed"]
        assert (failed["session"], failed["message"], failed["outcome"]) == (session, "Work on it", "error")
        assert "The model is gone." in failed["cause"]


async def test_it_is_told_again_when_it_has_changed(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        reader = Reader(net.app, "/api/overview/events", {"authorization": f"Bearer {token('observer')}"})
        await until(lambda: reader.text.count("event: overview") == 1)
        await net.say(await net.session())
        await until(lambda: '"message":"Hello"' in reader.text.replace('": "', '":"'))
        net.app.state.streams.close()
        await until(lambda: reader.ended)
        await reader.leave()


async def test_who_loses_the_token_is_told_no_more(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        reader = Reader(net.app, "/api/overview/events", {"authorization": f"Bearer {token('observer')}"})
        await until(lambda: reader.text.count("event: overview") == 1)
        net.exchange.people = People([])
        await until(lambda: reader.ended)
        await reader.leave()


async def test_a_browser_that_is_signed_out_is_told_no_more(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        secret = await net.exchange.browsers.by_code(net.exchange.browsers.code())
        assert secret is not None
        reader = Reader(net.app, "/api/overview/events", {"cookie": f"trunkline-4400={secret}"})
        await until(lambda: reader.text.count("event: overview") == 1)
        await net.exchange.browsers.sign_out(secret)
        await until(lambda: reader.ended)
        await reader.leave()


async def test_a_budget_of_which_nothing_was_used_is_told_too(tmp_path: Path) -> None:
    async with world(tmp_path, budget=AgentBudget(turns_per_hour=3)) as net:
        (first, *_) = (await net.get("/api/overview")).json()["agents"]
        assert first["budget"] == {"turns_per_hour": {"used": 0, "limit": 3}}


async def test_what_runs_beside_it_is_told_with_the_page_that_people_can_open(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        assert (await net.get("/api/overview", who="observer")).json()["services"] == []
        net.exchange.beside = (
            Beside("network", "http://127.0.0.1:8000", "open http://127.0.0.1:8000 with the key 0xabc"),
            Beside("tryll", "127.0.0.1:9100", "trunkline tryll chat"),
        )
        found = await net.get("/api/overview", who="observer")
        page = await net.get("/", who="observer")
    network, tryll = found.json()["services"]
    where = "http://127.0.0.1:8000"
    assert network == {"name": "network", "about": "what it is for", "where": where, "page": where}
    assert (tryll["name"], tryll["where"], tryll["page"]) == ("tryll", "127.0.0.1:9100", None)
    assert "0xabc" not in found.text
    assert page.text.count("what it is for") == 2
    assert f'<a href="{where}">' in page.text
    assert 'href="127.0.0.1:9100"' not in page.text


async def test_an_agent_that_cannot_work_is_not_well_although_nobody_has_looked_at_it(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        reader = Reader(net.app, "/api/overview/events", {"authorization": f"Bearer {token('observer')}"})

        def found() -> dict[str, Any]:
            events = [json.loads(line[6:]) for line in reader.text.splitlines() if line.startswith("data: ")]
            return {agent["name"]: agent for agent in events[-1]["agents"]} if events else {}

        await until(lambda: bool(found()) and not found()["broken"]["healthy"])
        assert found()["broken"]["last_error"] == "It lacks a key."
        assert (found()["echo"]["healthy"], found()["echo"]["known"]) == (True, True)
        await reader.leave()
        lines = (await net.get("/api/agents/broken/log")).json()["lines"]
        for _ in range(3):
            await net.get("/api/agents/broken")
        assert (await net.get("/api/agents/broken/log")).json()["lines"] == lines


async def test_it_is_made_once_for_all_who_watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with world(tmp_path) as net:
        made = 0
        listed = net.exchange.switchboard.approvals.listed

        async def counted(*args: Any) -> Any:
            nonlocal made
            made += 1
            return await listed(*args)

        monkeypatch.setattr(net.exchange.switchboard.approvals, "listed", counted)
        # So long that all of them come in one round.
        net.app.state.overview = SharedLook(net.app.state.overview._made, 1e9)
        who = {"authorization": f"Bearer {token('observer')}"}
        readers = [Reader(net.app, "/api/overview/events", who) for _ in range(5)]
        await until(lambda: all("event: overview" in reader.text for reader in readers))
        assert made == 1
        for reader in readers:
            await reader.leave()
