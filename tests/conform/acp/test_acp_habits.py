"""The kit against agents with one bad habit each: the right checks notice, and no other complains."""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.conform.acp.broken_agents import HABITS
from tests.conform.bad_habits import Habit, complaint, results_with
from tests.support.patience import PATIENCE_SECONDS
from trunkline.conform.acp.stage import Stage, Target
from trunkline.conform.acp.suite import SUITE
from trunkline.conform.kit import CheckResult

RUN_AGENT = Path(__file__).with_name("run_agent.py")
# Agents that hang are waited for; so several are tested at a time, each with few processes.
AGENTS_AT_A_TIME = 6
JOBS = 2
# Longer than a process takes to answer on a busy machine, shorter than the agents that hang.
PATIENCE = 3.0
#: The agent that offers everything offers images, too: what is said of others cannot be tried with it.
NOT_APPLICABLE = ["acp.content.unoffered"]


def target(name: str, patience: float = PATIENCE) -> Target:
    habit = HABITS.get(name)
    module = habit.made.__module__.rpartition(".")[2] if habit else "good_agent"
    argv = (sys.executable, "-S", "-E", str(RUN_AGENT), f"{module}.{name}")
    return Target(argv, {}, timeout=patience, patience=patience, quiet=0.4)


async def results_of(name: str, *patterns: str, jobs: int = JOBS, patience: float = PATIENCE) -> list[CheckResult]:
    subject = target(name, patience)
    results, _ = await SUITE.run(SUITE.select(patterns), lambda check: Stage(subject, check), jobs=jobs)
    return results


async def problem_with(name: str, habit: Habit, slots: asyncio.Semaphore) -> str | None:
    """What the kit got wrong about an agent."""
    async with slots:
        results = await results_with(habit.fails, habit.among, partial(results_of, name))
    return complaint(name, habit.fails, results)


def group(habit: Habit) -> str:
    return habit.fails[0].split(".")[1]


@pytest.mark.process
@pytest.mark.long
@pytest.mark.timeout(240)
@pytest.mark.parametrize("kind", sorted({group(habit) for habit in HABITS.values()}))
async def test_a_bad_habit_fails_its_own_checks_and_no_others(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SUITE, "gate", None)
    slots = asyncio.Semaphore(AGENTS_AT_A_TIME)
    tried = [problem_with(name, habit, slots) for name, habit in HABITS.items() if group(habit) == kind]
    assert [problem for problem in await asyncio.gather(*tried) if problem is not None] == []


def test_every_check_is_failed_by_some_habit() -> None:
    failed = {check for habit in HABITS.values() for check in habit.fails}
    assert sorted(set(SUITE.checks) ^ failed) == []


@pytest.mark.process
@pytest.mark.long
@pytest.mark.timeout(240)
async def test_an_agent_that_follows_the_protocol_passes_every_check() -> None:
    results = await results_of("GoodAgent", jobs=4, patience=PATIENCE_SECONDS)
    assert [(each.check.id, each.reason) for each in results if each.verdict == "failed"] == []
    assert [each.check.id for each in results if each.verdict != "passed"] == NOT_APPLICABLE
    assert len(results) == len(SUITE.checks)


@pytest.mark.process
async def test_when_an_agent_never_answers_nothing_else_is_exercised() -> None:
    results = await results_of("SaysNothing", "acp.init.answer", "acp.line.*", "acp.cancel.*")
    assert results[0].verdict == "failed"
    assert "`initialize`" in results[0].reason
    assert {result.verdict for result in results[1:]} == {"not exercised"}


@pytest.mark.process
async def test_what_an_agent_does_not_offer_or_do_is_not_applicable() -> None:
    patterns = ("acp.load.*", "acp.content.image", "acp.permission.*", "acp.mode.*", "acp.cancel.stops")
    results = await results_of("DoesLittle", *patterns, patience=PATIENCE_SECONDS)
    found = {each.check.id: (each.verdict, each.reason) for each in results}
    assert {verdict for verdict, _ in found.values()} == {"not applicable"}
    assert found["acp.load.unknown"][1] == "the agent does not offer `agentCapabilities.loadSession`"
    assert found["acp.permission.waits"][1].startswith("the agent asked for no permission")
    assert found["acp.permission.shape"][1].startswith("the agent asked for no permission")
    assert found["acp.mode.set"][1].startswith("the agent has no modes")
    assert found["acp.cancel.stops"][1].startswith("the turn was over before the kit could act")
