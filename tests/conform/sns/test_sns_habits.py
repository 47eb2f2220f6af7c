"""The kit against our network, and against networks with one bad habit each: the right check notices."""

from __future__ import annotations

import time

import pytest

from tests.conform.sns import broken_rules, broken_writing
from tests.conform.sns.bent import Asked, Reply
from tests.conform.sns.habits import HABITS
from tests.conform.sns.network import EXPIRED, Healthy
from trunkline.conform.sns.suite import SUITE

pytestmark = pytest.mark.slow

#: Those that registered their habits by being imported.
MODULES = (broken_rules, broken_writing)


async def test_our_network_passes_every_check(healthy: Healthy) -> None:
    results, records = await healthy.results()
    results += (await healthy.results(EXPIRED))[0]
    assert [(each.check.id, each.verdict, each.reason) for each in results if each.verdict != "passed"] == []
    assert {each.check.id for each in results} == set(SUITE.checks)
    shown = "".join(str(record.export()) for record in records)
    assert [secret for secret in healthy.cast.memory.secrets if secret in shown] == []
    assert len(healthy.cast.memory.secrets) > 10


@pytest.mark.timeout(300)
async def test_a_bad_habit_fails_its_checks_and_no_other(healthy: Healthy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SUITE, "gate", None)
    await healthy.register()
    problems = []
    for name, habit in HABITS.items():
        asked = {f"{check.rpartition('.')[0]}.*" for check in habit.fails} if habit.alone else habit.fails
        with monkeypatch.context() as patch:
            if habit.patch:
                habit.patch(patch)
            results, _ = await healthy.results(*asked, bend=habit.bend)
        unlike = [each for each in results if each.verdict != ("failed" if each.check.id in habit.fails else "passed")]
        missing = set(habit.fails) - {each.check.id for each in results}
        problems += [f"{name}: {check} was not run" for check in missing]
        problems += [f"{name}: {each.check.id} {each.verdict} {each.reason}" for each in unlike]
    assert problems == []


@pytest.mark.parametrize(("slow", "verdict"), [(2, "passed"), (1000, "not exercised")])
async def test_a_time_that_ran_out_on_its_way_says_nothing(
    healthy: Healthy, monkeypatch: pytest.MonkeyPatch, slow: int, verdict: str
) -> None:
    await healthy.register()
    now, passed, left = time.time_ns, 0, 0
    monkeypatch.setattr(time, "time_ns", lambda: now() + passed)

    async def takes_its_time(asked: Asked) -> Reply:
        nonlocal passed, left
        if asked.is_signed and left:
            passed, left = passed + 2 * 10**9, left - 1
        return await asked.forward()

    for check in ("sns.time.near", "sns.time.far"):
        left = slow
        (result,), _ = await healthy.results(check, bend=takes_its_time)
        assert (check, result.verdict) == (check, verdict), result.reason


def test_every_check_is_failed_by_some_habit() -> None:
    failed = {check for habit in HABITS.values() for check in habit.fails}
    assert sorted(set(SUITE.checks) - failed) == []
