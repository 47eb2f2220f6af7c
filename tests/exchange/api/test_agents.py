"""Agents over HTTP: how they do."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.exchange.api_world import world
from tests.support.exchange_world import SECRET
from trunkline.core.agent import Agent
from trunkline.core.faults import ConfigError
from trunkline.exchange.api import agents


async def test_agents_are_listed_with_what_they_can_do_and_what_is_wrong_with_them(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        found = {agent["name"]: agent for agent in (await net.get("/api/agents", "observer")).json()["agents"]}
        assert list(found) == ["fake", "echo", "broken"]
        assert (found["fake"]["kind"], found["fake"]["healthy"], found["fake"]["last_error"]) == ("fake", True, None)
        assert found["fake"]["capabilities"]["approval"] is True
        assert (found["broken"]["healthy"], found["broken"]["last_error"]) == (False, "It lacks a key.")


async def test_one_whose_workspace_is_missing_is_not_healthy_until_it_is_back(tmp_path: Path) -> None:
    async with world(tmp_path) as net:

        async def echo() -> tuple[bool, str | None]:
            found = {agent["name"]: agent for agent in (await net.get("/api/agents")).json()["agents"]}
            return found["echo"]["healthy"], found["echo"]["last_error"]

        assert await echo() == (True, None)
        (tmp_path / "workspace").rmdir()
        healthy, last_error = await echo()
        assert not healthy
        assert f"`{tmp_path / 'workspace'}` is not a directory" in (last_error or "")
        assert 'agent_healthy{agent="echo"} 0' in (await net.get("/metrics")).text
        (tmp_path / "workspace").mkdir()
        assert await echo() == (True, None)


async def test_secrets_in_what_is_wrong_with_an_agent_are_told_to_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(name: str, options: dict[str, Any]) -> Agent:
        raise ConfigError(f"The program said: bad key {SECRET}.", hint=f"Change {SECRET}.")

    async with world(tmp_path) as net:
        net.exchange.redactor.learn((SECRET,))
        monkeypatch.setattr(net.exchange.directory.find("echo"), "_make", failing)
        answers = [await net.post("/api/sessions", {"agent": "echo"}) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [503, 503]
        answers.append(await net.get("/api/agents", "observer"))
        assert all("The program said: bad key" in answer.text for answer in answers)
        assert not any(SECRET in answer.text for answer in answers)


async def test_one_that_takes_long_to_make_does_not_hold_up_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(name: str, options: dict[str, Any]) -> Agent:
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]  # it gives nothing

    monkeypatch.setattr(agents, "MAKING_SECONDS", 0.01)
    async with world(tmp_path) as net:
        monkeypatch.setattr(net.exchange.directory.find("echo"), "_make", never)
        found = {agent["name"]: agent for agent in (await net.get("/api/agents")).json()["agents"]}
        assert (found["echo"]["healthy"], found["echo"]["capabilities"]) == (True, {})
        assert (found["echo"]["known"], found["fake"]["known"]) == (False, True)
        assert not [task for task in asyncio.all_tasks() if task.get_name() == "make echo"]
