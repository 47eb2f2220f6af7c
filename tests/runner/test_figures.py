"""What a launcher tells of its agents, for Prometheus."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.launched import HANGS, Runners, config, keys
from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from trunkline.core.usage import Usage
from trunkline.runner import engine, fleet
from trunkline.runner.cycle import CycleReport
from trunkline.runner.figures import RunnerFigures
from trunkline.runner.fleet import Fleet, FleetHome
from trunkline.runner.known import KnownAgent

RESULTS = (
    {"action": "comment", "ok": True, "error": None, "communitySlug": "c"},
    {"action": "comment", "ok": False, "error": "no", "communitySlug": "c", "unknown": True},
    {"action": "tx", "ok": False, "error": "no", "communitySlug": "c"},
    {"action": 'made up by "the model"', "ok": False, "error": "no such action"},
    {"action": None, "ok": False, "error": "not an object"},
)


@pytest.fixture
async def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Fleet, Runners]]:
    monkeypatch.setattr(fleet, "FIRST_CYCLE_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(engine, "STOP_SECONDS", 0.2)
    runners = Runners()
    made = Fleet(FleetHome(str(tmp_path), runners), keys())
    yield made, runners
    await made.close()


def told(agents: Fleet) -> list[str]:
    """The samples."""
    lines = agents.figures.text(agents).splitlines()
    return [line.removeprefix("trunkline_runner_") for line in lines if not line.startswith("#")]


async def test_agents_are_counted_by_how_they_are(agents: tuple[Fleet, Runners]) -> None:
    made, runners = agents
    await made.start(config("a1"))
    runners.reports = [CycleReport(error="the model is away", status=401)]
    await made.start(config("a2"))
    await made.start(config("a3"))
    await made.stop("a3")
    for id, more in (("b1", {"missing": ("runnerToken",)}), ("b2", {"reason": "it cannot work"}), ("b3", {})):
        made.resting[id] = fleet.Resting(KnownAgent(id, {}, (), True), **more)
    made.elsewhere = {"b3": "another"}
    found = told(made)
    assert found[:6] == [
        'agents{state="running"} 2',
        'agents{state="waiting"} 1',
        'agents{state="standing_by"} 1',
        'agents{state="failed"} 1',
        'agents{state="stopped"} 1',
        "agents_failing 1",
    ]
    times = [line.partition(" ")[0] for line in found if "timestamp" in line]
    assert times == [
        'last_cycle_timestamp_seconds{agent="a1"}',
        'last_cycle_timestamp_seconds{agent="a2"}',
        'last_success_timestamp_seconds{agent="a1"}',
    ]
    # It shares them with nobody.
    assert not any("leases" in line or "database" in line for line in found)


async def test_cycles_are_counted_by_their_end_also_when_the_agent_is_gone(agents: tuple[Fleet, Runners]) -> None:
    made, runners = agents
    runners.reports = [CycleReport(), CycleReport(error="no"), CycleReport(skipped=True), HANGS]
    await made.start(config())
    runner = runners.made[0]
    await made.run_once("a1", None)
    await made.run_once("a1", None)
    cycle = asyncio.create_task(made.run_once("a1", None))
    await until(lambda: runner.begun == 4)
    await made.stop("a1")
    await cycle
    assert [line for line in told(made) if line.startswith("cycles_total")] == [
        'cycles_total{outcome="success"} 1',
        'cycles_total{outcome="error"} 1',
        'cycles_total{outcome="stopped"} 1',
    ]


async def test_what_cycles_did_is_counted_under_names_that_no_model_makes_up(agents: tuple[Fleet, Runners]) -> None:
    made, runners = agents
    runners.reports = [CycleReport(results=RESULTS, usage=Usage(input_tokens=7, output_tokens=2), sent=3)]
    await made.start(config())
    found = told(made)
    assert [line for line in found if line.startswith("actions_total")] == [
        'actions_total{action="comment",outcome="success"} 1',
        'actions_total{action="comment",outcome="unknown"} 1',
        'actions_total{action="tx",outcome="error"} 1',
        'actions_total{action="other",outcome="dropped"} 2',
    ]
    assert found[-3:] == ["transactions_sent_total 3", 'tokens_total{kind="input"} 7', 'tokens_total{kind="output"} 2']


def test_a_cycle_without_a_model_uses_no_tokens(tmp_path: Path) -> None:
    figures = RunnerFigures()
    figures.over(CycleReport())
    text = figures.text(Fleet(FleetHome(str(tmp_path)), keys()))
    assert 'trunkline_runner_tokens_total{kind="input"} 0\n' in text
