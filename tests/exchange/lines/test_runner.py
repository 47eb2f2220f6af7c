"""Agents on our own network whose brains are sessions of the exchange."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest

from tests.network.conftest import postgres_server, postgres_url
from tests.support.attached import echo, exchange
from tests.support.launched import keys
from tests.support.patience import PATIENCE_SECONDS
from tests.support.runner_place import RunnerPlace, runner_place
from trunkline.core.agent import Approve
from trunkline.core.events import Envelope, TurnStarted
from trunkline.core.faults import ConfigError
from trunkline.exchange.approvals import Approval
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.lines.runner import RunnerLine, service, setup
from trunkline.exchange.settings import AgentBudget, AgentSettings, ClusterSettings, ExchangeSettings, WireSettings

T = TypeVar("T")

__all__ = ["postgres_server", "postgres_url"]

SECRET = "what-callers-know"
HEADERS = {"x-runner-secret": SECRET}


def thread(place: RunnerPlace, title: str) -> dict[str, Any]:
    return {"action": "create_thread", "communitySlug": place.slug, "title": title, "body": "It is here."}


def said(place: RunnerPlace, title: str) -> dict[str, Any]:
    """A step of a script: to begin a thread."""
    return {"text": json.dumps([thread(place, title)])}


def deciding(home: Path, *turns: list[dict[str, Any]], **more: Any) -> AgentSettings:
    """An agent that says these steps, turn by turn."""
    script = home / "deciding.json"
    usage = {"input_tokens": 100, "output_tokens": 10}
    script.write_text(json.dumps({"turns": [{"steps": steps, "usage": usage} for steps in turns]}))
    return AgentSettings("", f"scripted:{script}", str(home), **more)


async def until(look: Callable[[], Awaitable[T]]) -> T:
    """What is there when anything is."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not (found := await look()):  # noqa: ASYNC110  (nobody tells)
            await asyncio.sleep(0.005)
    return found


class Launched:
    """A wire with its launcher, and an agent that runs a cycle when it is told to."""

    def __init__(self, line: RunnerLine, config: dict[str, Any], client: httpx.AsyncClient) -> None:
        self.line = line
        self.config = config
        self._client = client

    async def ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        answer = await self._client.request(method, f"{self.line.where}{path}", headers=HEADERS, json=body)
        found: dict[str, Any] = answer.json()
        return found

    async def cycle(self, **more: Any) -> dict[str, Any]:
        """Run one; gives what it came to."""
        brain = {"kind": "agent", "name": "helper"}
        found = await self.ask("POST", "/runner/run-once", {"config": {**self.config, "brain": brain, **more}})
        result: dict[str, Any] = found.get("result", found)
        return result


@asynccontextmanager
async def served(
    exchange: Exchange, place: RunnerPlace, agent: str | None = None, **keys_of_wire: Any
) -> AsyncIterator[Launched]:
    """The wire, until the end of the block."""
    settings = WireSettings("runner", None if agent is None else (agent,), keys_of_wire)
    line = RunnerLine(exchange, setup(exchange.settings, settings, {"S": SECRET}), keys())
    stop, reachable = asyncio.Event(), asyncio.Event()
    task = asyncio.create_task(line.run(stop, reachable.set))
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await reachable.wait()
        async with httpx.AsyncClient(timeout=PATIENCE_SECONDS) as client:
            yield Launched(line, place.config, client)
    finally:
        stop.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await task


LAUNCHER = {"listen": "127.0.0.1:0", "secret_env": "S"}


async def titles(place: RunnerPlace) -> set[str]:
    return {str(row["title"]) for row in await place.world.rows("SELECT title FROM thread WHERE agent_id IS NOT NULL")}


async def asked(running: Exchange) -> Approval:
    """What waits for a person, when it does."""
    return (await until(lambda: running.switchboard.approvals.found("pending")))[0]


def log(running: Exchange, session: str) -> list[Any]:
    return [each.event for each in running.switchboard.peek(session).records if isinstance(each, Envelope)]


async def test_the_agents_of_the_file_run_by_themselves_and_think_with_the_agent_that_the_wire_names(
    tmp_path: Path,
) -> None:
    async with runner_place(tmp_path) as place:
        helper = deciding(tmp_path, [said(place, "First")])
        async with exchange(tmp_path, other=echo(tmp_path), helper=helper) as running:
            async with served(running, place, "helper", agents={"ada": place.config}) as wire:
                assert wire.line.where == "ada"
                assert await until(lambda: titles(place)) == {"First"}
            (row,) = await running.switchboard.rows()
            assert (row.agent, row.by_person) == ("helper", "runner:ada")
            await running.switchboard.written()
            (usage,) = await running.budgets.usage("person")
            assert (usage["person"], usage["turns"], usage["input_tokens"]) == ("runner:ada", 1, 100)


@pytest.mark.slow
async def test_exchanges_that_share_their_runners_run_each_agent_once(tmp_path: Path, postgres_url: str) -> None:
    async with runner_place(tmp_path) as place:
        helper = deciding(tmp_path, [said(place, "First")], [said(place, "Second")])
        shared = {"agents": {"ada": {**place.config, "runtime": {"intervalSec": 3600}}}, "db": postgres_url}
        async with (
            exchange(tmp_path / "a", helper=helper) as first,
            exchange(tmp_path / "b", helper=helper) as second,
            served(first, place, "helper", **shared),
            served(second, place, "helper", **shared),
        ):
            assert await until(lambda: titles(place)) == {"First"}
            thinking = [await running.switchboard.rows() for running in (first, second)]
            assert sorted(map(len, thinking)) == [0, 1]


async def test_the_exchanges_of_a_cluster_share_their_runners_unless_the_file_names_another_database(
    tmp_path: Path,
) -> None:
    cluster = ClusterSettings(("nats://127.0.0.1:4222",), "postgresql:///cluster", "a")
    alone = ExchangeSettings("", str(tmp_path), agents={"helper": echo(tmp_path)})
    agents = {"ada": {"agentId": "a1", "runnerToken": "rnr_0123456789"}}
    found = [
        setup(settings, WireSettings("runner", None, {"agents": agents, **keys_of_wire}), {}).db
        for settings in (alone, alone.replace(cluster=cluster))
        for keys_of_wire in ({}, {"db": "postgresql:///another"})
    ]
    assert found == [None, "postgresql:///another", "postgresql:///cluster", "postgresql:///another"]


async def test_a_brain_is_one_session_which_goes_on_after_a_restart(tmp_path: Path) -> None:
    async with runner_place(tmp_path) as place:
        helper = deciding(tmp_path, [said(place, "First")], [said(place, "Second")])
        for number, title in enumerate(("First", "Second"), 1):
            async with exchange(tmp_path, helper=helper) as running:
                async with served(running, place, **LAUNCHER) as wire:
                    result = await wire.cycle()
                assert (result["error"], [each["title"] for each in result["actions"]]) == (None, [title])
                (row,) = await running.switchboard.rows()
                begun = [each for each in log(running, row.id) if isinstance(each, TurnStarted)]
                assert [each.message.sender for each in begun] == [f"runner:{place.config['agentId']}"] * number
                assert place.slug in begun[-1].message.text
        assert await titles(place) == {"First", "Second"}


async def test_a_tool_is_asked_of_a_person_and_the_cycle_goes_on_with_the_answer(tmp_path: Path) -> None:
    tool = {"tool": {"name": "Bash", "args": {"command": "date"}, "output": "today"}}
    async with runner_place(tmp_path) as place:
        helper = deciding(tmp_path, [{"text": "Let me see."}, tool, said(place, "Asked")])
        async with exchange(tmp_path, helper=helper) as running, served(running, place, **LAUNCHER) as wire:
            cycle = asyncio.create_task(wire.cycle())
            approval = await asked(running)
            live = await running.switchboard.find(approval.session)
            await live.decide(approval, Approve(), "ana")
            assert (await cycle)["error"] is None
        assert await titles(place) == {"Asked"}


async def test_a_fault_and_a_spent_budget_are_why_a_cycle_fails(tmp_path: Path) -> None:
    fault = {"fail": {"kind": "provider", "message": "The model is away."}}
    async with runner_place(tmp_path) as place:
        helper = deciding(tmp_path, [fault], [said(place, "Second")], budget=AgentBudget(turns_per_hour=2))
        async with exchange(tmp_path, helper=helper) as running, served(running, place, **LAUNCHER) as wire:
            errors = [(await wire.cycle())["error"] for _ in range(3)]
        assert (errors[0], errors[1]) == ("The model is away.", None)
        assert "budget of 2 turns an hour" in errors[2]
        assert await titles(place) == {"Second"}


async def test_a_turn_that_somebody_stops_decides_nothing(tmp_path: Path) -> None:
    async with runner_place(tmp_path) as place:
        helper = deciding(tmp_path, [{"wait": 3600}, said(place, "Never")])
        async with exchange(tmp_path, helper=helper) as running, served(running, place, **LAUNCHER) as wire:
            cycle = asyncio.create_task(wire.cycle())
            (row,) = await until(running.switchboard.rows)
            live = await running.switchboard.find(row.id)
            async for each in live.session.subscribe(0):
                if isinstance(each, Envelope) and isinstance(each.event, TurnStarted):
                    break
            live.session.stop("ana")
            assert (await cycle)["error"] == "The agent gave no answer."
        assert await titles(place) == set()


@pytest.mark.parametrize(
    ("brain", "problem"),
    [
        ({"kind": "agent", "name": "coder"}, "`brain.name` is `coder`. The exchange has `helper`."),
        ({"kind": "agent", "name": "helper", "allow": ["Read"]}, "`brain.allow` is not for an agent of the exchange"),
    ],
)
async def test_what_a_brain_cannot_be_is_refused_in_the_file_and_by_the_launcher(
    tmp_path: Path, brain: dict[str, Any], problem: str
) -> None:
    async with runner_place(tmp_path) as place, exchange(tmp_path, helper=echo(tmp_path)) as running:
        with pytest.raises(ConfigError) as refused:
            service(running, WireSettings("runner", None, {"agents": {"ada": {**place.config, "brain": brain}}}))
        assert problem in str(refused.value)
        async with served(running, place, **LAUNCHER) as wire:
            assert problem in (await wire.cycle(brain=brain))["error"]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, r"Write `\[wires.runner.agents.NAME\]`"),
        ({"listen": "127.0.0.1:0"}, "needs a secret"),
        ({"listen": "0.0.0.0:0", "secret_env": "S"}, "lets other machines connect"),
    ],
)
async def test_a_wire_that_could_do_nothing_or_would_let_anybody_in_is_refused(
    tmp_path: Path, given: dict[str, Any], problem: str
) -> None:
    async with exchange(tmp_path, helper=echo(tmp_path)) as running:
        with pytest.raises(ConfigError, match=problem):
            setup(running.settings, WireSettings("runner", None, given), {"S": SECRET})


async def test_an_agent_that_the_file_no_longer_names_does_not_run_again(tmp_path: Path) -> None:
    async with runner_place(tmp_path) as place:
        helper = deciding(tmp_path, [said(place, "First")])
        agents = {"ada": place.config}
        async with exchange(tmp_path, helper=helper) as running:
            async with served(running, place, "helper", agents=agents, **LAUNCHER) as wire:
                await until(lambda: titles(place))
                assert wire.line.where.startswith("http://127.0.0.1:")
            async with served(running, place, **LAUNCHER) as wire:
                status = (await wire.ask("GET", "/runner/status"))["status"]
                assert status["runningAny"] is False
