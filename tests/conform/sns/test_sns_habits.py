"""The kit against our network, and against networks with one bad habit each: the right check notices."""

from __future__ import annotations

import pytest

from tests.conform.sns import broken_rules, broken_writing
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


def test_every_check_is_failed_by_some_habit() -> None:
    failed = {check for habit in HABITS.values() for check in habit.fails}
    assert sorted(set(SUITE.checks) - failed) == []
