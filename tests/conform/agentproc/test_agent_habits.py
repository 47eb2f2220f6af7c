"""The kit against agents with one bad habit each: the right check notices. This shows that a check can fail at all."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from tests.conform.agentproc.broken_agents import HABITS
from tests.support.patience import PATIENCE_SECONDS
from trunkline.conform.agentproc.agent import ending
from trunkline.conform.agentproc.agent.stage import Stage, Target
from trunkline.conform.agentproc.agent.suite import SUITES
from trunkline.conform.agentproc.agent.turn import Turning
from trunkline.conform.kit import CheckResult
from trunkline.wires.agentproc.messages import Dialect

RUN_AGENT = Path(__file__).with_name("run_agent.py")
# Longer than a habit takes on a busy machine, shorter than the agents that hang.
PATIENCE = 2.5
AGENTS_AT_A_TIME = 8

DIALECTS: dict[str, Dialect] = {"ap": "0.1", "ap4": "0.4"}


async def results_of(
    name: str, dialect: Dialect, *patterns: str, jobs: int = 2, patience: float = PATIENCE, silent: str = ""
) -> list[CheckResult]:
    habit = HABITS.get(name)
    module = habit.agent.__module__.rpartition(".")[2] if habit else "good_agent"
    argv = (sys.executable, "-S", "-E", str(RUN_AGENT), f"{module}.{name}", dialect)
    target = Target(argv, {"SILENT": silent}, dialect, timeout=patience, patience=patience, exit_seconds=patience / 2)
    suite = SUITES[dialect]
    results, _ = await suite.run(suite.select(patterns), lambda check: Stage(target, check), jobs=jobs)
    return results


async def unnoticed(name: str, prefix: str, fails: list[str], slots: asyncio.Semaphore) -> list[str]:
    """What the kit did not notice about an agent."""
    async with slots:
        results = await results_of(name, DIALECTS[prefix], *fails)
    return [f"{name}: {each.check.id} {each.verdict} {each.reason}" for each in results if each.verdict != "failed"]


@pytest.mark.process
@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("prefix", DIALECTS)
async def test_a_bad_habit_fails_its_checks(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SUITES[DIALECTS[prefix]], "gate", None)
    slots = asyncio.Semaphore(AGENTS_AT_A_TIME)
    tried = [
        unnoticed(name, prefix, fails, slots)
        for name, habit in HABITS.items()
        if (fails := [check for check in habit.fails if check.startswith(f"{prefix}.")])
    ]
    assert [problem for found in await asyncio.gather(*tried) for problem in found] == []


@pytest.mark.parametrize("dialect", SUITES)
def test_every_check_is_failed_by_some_habit(dialect: Dialect) -> None:
    failed = {check for habit in HABITS.values() for check in habit.fails}
    assert sorted(set(SUITES[dialect].checks) - failed) == []


def test_habits_name_checks_that_exist() -> None:
    failed = {check for habit in HABITS.values() for check in habit.fails}
    assert sorted(failed - {check for suite in SUITES.values() for check in suite.checks}) == []


@pytest.mark.process
@pytest.mark.long
@pytest.mark.parametrize("dialect", SUITES)
async def test_an_agent_that_follows_the_protocol_passes_every_check(dialect: Dialect) -> None:
    results = await results_of("GoodAgent", dialect, jobs=8, patience=PATIENCE_SECONDS)
    assert [(each.check.id, each.reason) for each in results if each.verdict != "passed"] == []
    assert len(results) == len(SUITES[dialect].checks)


@pytest.mark.process
@pytest.mark.parametrize("dialect", SUITES)
async def test_an_agent_that_answers_at_once_cannot_be_interrupted(
    dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However long a busy machine takes to let it go.
    monkeypatch.setattr(ending, "LINGERING_SECONDS", PATIENCE_SECONDS)
    results = await results_of("AnswersAtOnce", dialect, "*.term.*", jobs=4, patience=PATIENCE_SECONDS)
    assert {(each.verdict, each.reason.partition(";")[0]) for each in results} == {
        ("not exercised", "the answer was finished before SIGTERM could interrupt it")
    }


@pytest.mark.process
async def test_an_agent_that_is_silent_until_its_answer_is_whole_is_interrupted_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    over, notes = tmp_path / "over", tmp_path / "notes"
    turns = 0

    async def speaks(self: Turning, within: float) -> bool:
        # However long a busy machine takes to start the agent, its silence has begun.
        nonlocal turns
        turns += 1
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not notes.exists() or len(notes.read_text()) < turns:  # noqa: ASYNC110  (a file wakes nobody)
                await asyncio.sleep(0.01)
        if turns > 1:
            return await really(self, within)
        # From the first turn, which nobody interrupts, the kit learns of the silence.
        over.touch()
        found = await really(self, within)
        await self.process.ended(PATIENCE_SECONDS)
        over.unlink()
        return found

    really = Turning.speaks
    monkeypatch.setattr(Turning, "speaks", speaks)
    monkeypatch.setattr(ending, "SILENT_SECONDS", 0.0)
    silent = f"{over}:{notes}"
    results = await results_of("SilentForLong", "0.1", "ap.term.status", patience=PATIENCE_SECONDS, silent=silent)
    assert [(each.verdict, each.reason) for each in results] == [("failed", "the exit status is 7")]


@pytest.mark.process
async def test_when_an_agent_never_answers_nothing_else_is_exercised() -> None:
    results = await results_of("SaysNothing", "0.1", "ap.turn.answer", "ap.line.*", "ap.term.*")
    assert results[0].verdict == "failed"
    assert {result.verdict for result in results[1:]} == {"not exercised"}
