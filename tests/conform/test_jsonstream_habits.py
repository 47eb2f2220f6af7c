"""The kit against agents with one bad habit each: the right checks notice, and no other complains.

This is what shows that a check can fail at all.
"""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.conform.bad_habits import Habit, results_with
from tests.conform.broken_agents import HABITS
from tests.support.patience import PATIENCE_SECONDS
from trunkline.conform.jsonstream.stage import Stage, Target
from trunkline.conform.jsonstream.suite import SUITE
from trunkline.conform.kit import CheckResult

RUN_AGENT = Path(__file__).with_name("run_agent.py")
# Agents that hang are waited for; so several are tested at a time, each with few processes.
AGENTS_AT_A_TIME = 4
JOBS = 3
# Longer than the slowest habit that is meant to be noticed by its slowness, 2.2 s.
PATIENCE = 3.0


def target(name: str, patience: float) -> Target:
    habit = HABITS.get(name)
    module = habit.made.__module__.rpartition(".")[2] if habit else "good_agent"
    argv = (sys.executable, "-S", "-E", str(RUN_AGENT), f"{module}.{name}")
    return Target(argv, {}, timeout=patience, patience=patience, quiet=0.4)


async def results_of(name: str, *patterns: str, jobs: int = JOBS, patience: float = PATIENCE) -> list[CheckResult]:
    subject = target(name, patience)
    results, _ = await SUITE.run(SUITE.select(patterns), lambda check: Stage(subject, check), jobs=jobs)
    return results


async def complaint(name: str, habit: Habit, slots: asyncio.Semaphore) -> str | None:
    """What the kit got wrong about an agent."""
    async with slots:
        results = await results_with(habit.fails, habit.among, partial(results_of, name))
    found = {result.check.id: f"{result.verdict}: {result.reason}" for result in results if result.verdict != "passed"}
    unnoticed = sorted(set(habit.fails) - set(found))
    wronged = sorted(f"{check} ({found[check]})" for check in set(found) - set(habit.fails))
    if not unnoticed and not wronged:
        return None
    return f"{name}: not noticed by {unnoticed or 'none'}; wrongly noticed by {wronged or 'none'}"


def group(habit: Habit) -> str:
    return habit.fails[0].split(".")[1]


@pytest.mark.process
@pytest.mark.long
@pytest.mark.timeout(180)
@pytest.mark.parametrize("kind", sorted({group(habit) for habit in HABITS.values()}))
async def test_a_bad_habit_fails_its_own_checks_and_no_others(kind: str) -> None:
    slots = asyncio.Semaphore(AGENTS_AT_A_TIME)
    tried = [complaint(name, habit, slots) for name, habit in HABITS.items() if group(habit) == kind]
    assert [problem for problem in await asyncio.gather(*tried) if problem is not None] == []


def test_every_check_is_failed_by_some_habit() -> None:
    failed = {check for habit in HABITS.values() for check in habit.fails}
    assert sorted(set(SUITE.checks) ^ failed) == []


@pytest.mark.process
@pytest.mark.long
@pytest.mark.timeout(300)
async def test_an_agent_that_follows_the_protocol_passes_every_check() -> None:
    results = await results_of("GoodAgent", jobs=4, patience=PATIENCE_SECONDS)
    assert [(result.check.id, result.reason) for result in results if result.verdict != "passed"] == []
    assert len(results) == len(SUITE.checks)


@pytest.mark.process
async def test_when_an_agent_never_gets_ready_nothing_else_is_exercised() -> None:
    results = await results_of("NeverReady", "js.ready.*", "js.stop.*")
    assert results[0].check.id == "js.ready.first"
    by_id = {result.check.id: result for result in results}
    assert by_id["js.ready.arrives"].verdict == "failed"
    others = [result for check, result in by_id.items() if check != "js.ready.arrives"]
    assert {result.verdict for result in others} == {"not exercised"}
    assert all("js.ready.arrives" in result.reason for result in others)
