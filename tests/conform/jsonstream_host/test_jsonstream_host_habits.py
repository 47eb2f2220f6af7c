"""The kit against hosts with one bad habit each: the right check notices. This shows that a check can fail at all."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from tests.conform.jsonstream_host.broken_hosts import HABITS
from tests.support.patience import PATIENCE_SECONDS
from trunkline.conform.jsonstream_host.stage import TIMEOUT_SECONDS, Stage, Target
from trunkline.conform.jsonstream_host.suite import SUITE
from trunkline.conform.kit import Check, CheckResult

RUN_HOST = str(Path(__file__).with_name("run_host.py"))
# Longer than a run takes on a busy machine, shorter than the hosts that hang.
PATIENCE = 6.0
HOSTS_AT_A_TIME = 8


def target(name: str, *, patience: float = PATIENCE, prompt: bool = False) -> Target:
    argv = (sys.executable, "-S", "-E", RUN_HOST, name, "{agent}", *(("{prompt}",) if prompt else ()))
    return Target(argv, {}, timeout=2.5 * patience, patience=patience)


async def results_of(made: Target, checks: list[Check], jobs: int = 2) -> list[CheckResult]:
    results, _ = await SUITE.run(checks, lambda check: Stage(made, check), jobs=jobs)
    return results


async def unnoticed(name: str, fails: tuple[str, ...], slots: asyncio.Semaphore) -> list[str]:
    """What the kit did not notice about a host."""
    async with slots:
        results = await results_of(target(name), SUITE.select(fails))
    return [f"{name}: {each.check.id} {each.verdict} {each.reason}" for each in results if each.verdict != "failed"]


@pytest.mark.process
@pytest.mark.long
@pytest.mark.timeout(300)
async def test_a_bad_habit_fails_its_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SUITE, "gate", None)
    slots = asyncio.Semaphore(HOSTS_AT_A_TIME)
    tried = [unnoticed(name, fails, slots) for name, fails in HABITS.items()]
    assert [problem for found in await asyncio.gather(*tried) for problem in found] == []


def test_the_agent_outlives_whatever_time_its_host_is_given() -> None:
    assert target("GoodHost").lifetime > target("GoodHost").timeout
    assert Target(("host", "{agent}"), {}).lifetime > TIMEOUT_SECONDS


class ShortLived(Target):
    """One whose agent ends by itself, long before the host has to."""

    @property
    def lifetime(self) -> float:
        return 0.5


@pytest.mark.process
async def test_a_host_that_is_told_by_the_agents_own_end_has_not_given_it_up() -> None:
    made = target("WaitsForEver", patience=PATIENCE_SECONDS)
    checks = SUITE.select(("jh.ready.never",))
    (result,) = await results_of(ShortLived(made.argv, made.env, made.timeout, made.patience), checks)
    assert (result.verdict, result.reason) == ("failed", "the host waited until the agent ended by itself")


def test_every_check_is_failed_by_some_habit() -> None:
    failed = {check for fails in HABITS.values() for check in fails}
    assert sorted(set(SUITE.checks) - failed) == []
    assert sorted(failed - set(SUITE.checks)) == []


@pytest.mark.process
@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("prompt", [False, True], ids=["told on its input", "told by an argument"])
async def test_a_host_that_follows_the_protocol_passes_every_check(prompt: bool) -> None:
    made = target("GoodHost", patience=20.0, prompt=prompt)
    checks = SUITE.playable(SUITE.select(()), set() if prompt else {"converses"})
    assert len(checks) == len(SUITE.checks) - prompt
    results = await results_of(made, checks, jobs=8)
    assert [(each.check.id, each.reason) for each in results if each.verdict != "passed"] == []


@pytest.mark.process
@pytest.mark.long
@pytest.mark.timeout(300)
async def test_our_own_host_passes_every_check() -> None:
    chat = (sys.executable, "-m", "trunkline", "chat", "jsonstream:{agent} --json-stream", "-p", "{prompt}")
    made = Target((*chat, "--auto-approve"), {}, timeout=45.0, patience=20.0)
    checks = SUITE.playable(SUITE.select(()), set())
    results = await results_of(made, checks, jobs=4)
    assert [(each.check.id, each.reason) for each in results if each.verdict != "passed"] == []
