"""One agent over HTTP: what it is, how to reach it, its log, and a new beginning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.exchange.api_world import world
from tests.support.exchange_world import SECRET
from tests.support.loop import until
from trunkline.core.agent import Agent
from trunkline.core.events import ToolRequested, TurnEnded
from trunkline.core.faults import AgentFailed
from trunkline.exchange.settings import AgentBudget


async def test_an_agent_is_shown_with_its_settings_and_what_it_has_used(tmp_path: Path) -> None:
    async with world(tmp_path, budget=AgentBudget(turns_per_hour=10)) as net:
        id = await net.session()
        await net.say(id)
        await until(lambda: net.fake.busy)
        found = (await net.get("/api/agents/fake")).json()
        assert (found["name"], found["agent"], found["mode"]) == ("fake", "fake:strings", "default")
        assert found["workspace"] == str(tmp_path / "workspace")
        assert (found["allow"], found["provider"], found["talk"]) == (None, None, None)
        assert found["budget"]["turns_per_hour"] == {"used": 1, "limit": 10}
        assert (found["awake"], found["busy"]) == (1, 1)
        assert found["capabilities"]["approval"] is True
        net.fake.say(TurnEnded("success"))
        broken = (await net.get("/api/agents/broken", "observer")).json()
        assert (broken["healthy"], broken["last_error"]) == (False, "It lacks a key.")
        for path in ("", "/reach", "/log"):
            assert (await net.get(f"/api/agents/nobody{path}")).status_code == 404


async def test_who_can_be_heard_can_be_talked_to_where_there_is_a_page_for_that(tmp_path: Path) -> None:
    class Talk:
        name, where, about, trial = "talk", "http://127.0.0.1:9180", "", ""

        async def run(self, stop: Any, reachable: Any) -> None: ...

    async with world(tmp_path) as net:
        net.exchange.beside = (Talk(),)
        assert (await net.get("/api/agents/fake")).json()["talk"] is None
        net.fake.capabilities = net.fake.capabilities.replace(voice=True)
        assert (await net.get("/api/agents/fake")).json()["talk"] == "http://127.0.0.1:9180"


async def test_ways_to_reach_it_have_this_exchanges_address_and_nobodys_token(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        net.exchange.address = "http://127.0.0.1:4711"
        found = (await net.get("/api/agents/fake/reach")).json()["ways"]
        assert {"chat", "jsonstream", "agentproc", "acp", "mcp", "http", "openai"} == {way["wire"] for way in found}
        assert all("http://127.0.0.1:4711" in way["text"] for way in found if way["wire"] == "openai")
        assert "the token of" not in str(found)


@pytest.mark.parametrize("who", ["observer", "talker", "approver"])
async def test_only_an_admin_is_told_folders_of_the_machine(tmp_path: Path, who: str) -> None:
    async with world(tmp_path, script="turns: [{steps: [{text: Hello}]}]") as net:
        for path in ("", "/reach"):
            whole = (await net.get(f"/api/agents/scripted{path}")).text
            assert str(tmp_path) in whole
            found = await net.get(f"/api/agents/scripted{path}", who)
            assert found.status_code == 200
            assert str(tmp_path) not in found.text
        shown = (await net.get("/api/agents/scripted", who)).json()
        assert (shown["agent"], shown["workspace"]) == ("scripted", None)
        ways = (await net.get("/api/agents/scripted/reach", who)).json()["ways"]
        assert {"http", "openai", "mcp", "acp"} == {way["wire"] for way in ways}
        assert not any(way["is_here"] for way in ways)


async def test_failures_are_in_its_log_without_secrets(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        net.exchange.redactor.learn((SECRET,))
        id = await net.session()
        net.exchange.directory.logs.note("fake", "stderr", f"a program knows {SECRET}", id)
        await net.get("/api/agents/broken")
        (line,) = (await net.get("/api/agents/fake/log", "observer")).json()["lines"]
        assert (line["level"], line["text"], line["session"]) == ("stderr", "a program knows [redacted]", id)
        (line,) = (await net.get("/api/agents/broken/log", "observer")).json()["lines"]
        assert (line["level"], line["text"]) == ("error", "It lacks a key.")
        for number in range(3):
            net.exchange.directory.logs.note("fake", "warning", f"line {number}")
        latest = (await net.get("/api/agents/fake/log?limit=2")).json()["lines"]
        assert [each["text"] for each in latest] == ["line 1", "line 2"]
        for limit, status in (("0", 400), ("1", 200), ("500", 200), ("501", 400)):
            assert (await net.get(f"/api/agents/fake/log?limit={limit}")).status_code == status


async def test_a_restart_lets_go_of_what_is_at_rest_and_makes_the_agent_anew(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        resting, busy = await net.session(), await net.session()
        await net.say(busy)
        await until(lambda: net.fake.busy)
        made = len(net.fakes)
        path = "/api/agents/fake/restart"
        for who in ("observer", "talker", "approver"):
            assert (await net.post(path, {}, who)).status_code == 403
        found = (await net.post(path, {})).json()
        assert found == {"let_go": 1, "kept": 1, "healthy": True, "last_error": None}
        board = net.exchange.switchboard
        assert board.live(resting) is None
        assert (live := board.live(busy)) is not None
        assert live.session.turn == 1
        assert len(net.fakes) == made + 1
        (line,) = (await net.get("/api/agents/fake/log")).json()["lines"]
        assert line["text"] == "Restarted by admin: let go of 1 sessions, kept 1."
        assert (await net.post("/api/agents/nobody/restart", {})).status_code == 404


async def test_a_restart_at_once_keeps_what_was_asked(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        await net.get("/api/agents/fake")
        net.fake.capabilities = net.fake.capabilities.replace(continues=True)
        id = await net.session()
        await net.say(id)
        await until(lambda: net.fake.busy)
        net.fake.say(ToolRequested("c1", "Bash", "exec", {"command": "ls"}))
        await until(lambda: net.exchange.switchboard.live(id).session.waiting)  # type: ignore[union-attr]
        found = (await net.post("/api/agents/fake/restart", {"now": True})).json()
        assert (found["let_go"], found["kept"]) == (1, 0)
        assert net.exchange.switchboard.live(id) is None
        (approval,) = await net.exchange.switchboard.approvals.found()
        assert approval.state == "pending"


async def test_what_waited_when_an_agent_was_restarted_is_answered_though_nobody_comes_back(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await net.session()
        await net.say(id, "first")
        await until(lambda: net.fake.busy)
        await net.say(id, "second")
        await net.post("/api/agents/fake/restart", {"now": True})
        await until(lambda: net.fake.busy and [each.text for each in net.fake.heard][-1] == "second")


async def test_one_that_has_failed_is_tried_at_once_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0

    async def failing(name: str, options: dict[str, Any]) -> Agent:
        nonlocal tries
        tries += 1
        raise AgentFailed("It is ill.")

    async with world(tmp_path) as net:
        monkeypatch.setattr(net.exchange.directory, "_make", failing)
        for _ in range(3):
            found = (await net.post("/api/agents/fake/restart", {})).json()
            assert (found["healthy"], found["last_error"]) == (False, "It is ill.")
        assert tries == 3
