"""The kit against servers with one bad habit each: the right checks notice, and no other complains."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conform.bad_habits import complaint, results_with

# Importing a module registers its habits.
from tests.conform.mcp import broken_servers, broken_webs
from tests.conform.mcp.habits_of_servers import HABITS, Habit
from tests.support.patience import PATIENCE_SECONDS
from trunkline.conform.kit import CheckResult
from trunkline.conform.mcp.stage import Stage, Target
from trunkline.conform.mcp.suite import SUITE

__all__ = ["broken_servers"]

if TYPE_CHECKING:
    from tests.conform.bad_habits import Play

RUN_SERVER = Path(__file__).with_name("run_server.py")
# Servers that hang are waited for; so several are tested at a time, each with few processes.
SERVERS_AT_A_TIME = 6
JOBS = 2
# Longer than a process takes to answer on a busy machine, shorter than the servers that hang.
PATIENCE = 3.0
#: What a server that offers everything, and is on standard streams or on the web alone, cannot be tried with.
NOT_APPLICABLE = {
    "stdio": {"init.not-announced", "http.*"},
    "web": {"init.not-announced", "line.only", "line.one", "exit.*"},
}


async def results_of(target: Target, *patterns: str, jobs: int = JOBS) -> list[CheckResult]:
    results, _ = await SUITE.run(SUITE.select(patterns), lambda check: Stage(target, check), jobs=jobs)
    return results


def program(name: str, patience: float = PATIENCE) -> Target:
    argv = (sys.executable, "-S", "-E", str(RUN_SERVER), name)
    return Target(argv, {}, timeout=patience, patience=patience, quiet=0.4, slow_tool="slow")


def web(url: str, patience: float = PATIENCE) -> Target:
    return Target((url,), {}, url=url, timeout=patience, patience=patience, quiet=0.4, slow_tool="slow")


def played(subject: Callable[[float], Target]) -> Play:
    """Puts checks to a server, with so much patience."""

    async def play(*patterns: str, patience: float = PATIENCE) -> list[CheckResult]:
        return await results_of(subject(patience), *patterns)

    return play


async def problem_with(name: str, habit: Habit, slots: asyncio.Semaphore) -> str | None:
    """What the kit got wrong about a server."""
    async with slots:
        if habit.web:
            listening, url = broken_webs.serve(habit.server())
            try:
                results = await results_with(habit.fails, habit.among, played(lambda patience: web(url, patience)))
            finally:
                await asyncio.to_thread(listening.shutdown)
                listening.server_close()
        else:
            results = await results_with(habit.fails, habit.among, played(partial(program, name)))
    return complaint(name, habit.fails, results)


def group(habit: Habit) -> str:
    return habit.fails[0].split(".")[1]


@pytest.mark.process
@pytest.mark.long
@pytest.mark.timeout(240)
@pytest.mark.parametrize("kind", sorted({group(habit) for habit in HABITS.values()}))
async def test_a_bad_habit_fails_its_own_checks_and_no_others(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SUITE, "gate", None)
    slots = asyncio.Semaphore(SERVERS_AT_A_TIME)
    tried = [problem_with(name, habit, slots) for name, habit in HABITS.items() if group(habit) == kind]
    assert [problem for problem in await asyncio.gather(*tried) if problem is not None] == []


def test_every_check_is_failed_by_some_habit() -> None:
    failed = {check for habit in HABITS.values() for check in habit.fails}
    assert sorted(set(SUITE.checks) ^ failed) == []


def _expected(transport: str) -> set[str]:
    patterns = [f"mcp.{each}" for each in NOT_APPLICABLE[transport]]
    return {check.id for check in SUITE.select(patterns)}


@pytest.mark.process
@pytest.mark.long
@pytest.mark.timeout(240)
async def test_a_program_that_follows_the_protocol_passes_every_check() -> None:
    results = await results_of(program("GoodServer", PATIENCE_SECONDS), jobs=4)
    assert [(each.check.id, each.reason) for each in results if each.verdict == "failed"] == []
    assert {each.check.id for each in results if each.verdict != "passed"} == _expected("stdio")
    assert len(results) == len(SUITE.checks)


async def test_a_server_on_the_web_that_follows_the_protocol_passes_every_check() -> None:
    listening, url = broken_webs.serve(broken_webs.GoodWeb())
    try:
        results = await results_of(web(url, PATIENCE_SECONDS), jobs=4)
    finally:
        await asyncio.to_thread(listening.shutdown)
        listening.server_close()
    assert [(each.check.id, each.reason) for each in results if each.verdict == "failed"] == []
    assert {each.check.id for each in results if each.verdict != "passed"} == _expected("web")
