"""How the kits are tried with bad habits: who is only late is asked again, and who is wrong stays so."""

from __future__ import annotations

import pytest

from tests.conform.bad_habits import LONG_PATIENCE, complaint, results_with
from trunkline.conform.kit import Check, CheckResult, Verdict


@pytest.mark.parametrize(
    ("again", "problem"),
    [
        ("passed", None),
        ("failed", "Late: not noticed by none; wrongly noticed by ['k.one.right (failed: )']"),
        ("not exercised", "Late: not noticed by none; wrongly noticed by ['k.one.right (not exercised: )']"),
    ],
)
async def test_what_complains_wrongly_is_asked_once_more(again: Verdict, problem: str | None) -> None:
    played: list[tuple[tuple[str, ...], float]] = []

    async def play(*patterns: str, patience: float = 1.0) -> list[CheckResult]:
        played.append((patterns, patience))
        right: Verdict = "failed" if len(played) == 1 else again
        found: dict[str, Verdict] = {"k.one.habit": "failed", "k.one.right": right, "k.one.fine": "passed"}
        return [CheckResult(Check(id, "MUST", "1", ""), verdict) for id, verdict in found.items()]

    results = await results_with(["k.one.habit"], ["k.one.*"], play)
    assert complaint("Late", ["k.one.habit"], results) == problem
    assert sorted(each.check.id for each in results) == ["k.one.fine", "k.one.habit", "k.one.right"]
    assert played == [(("k.one.*",), 1.0), (("k.one.right",), LONG_PATIENCE)]


async def test_a_habit_that_nobody_noticed_is_not_asked_about_again() -> None:
    async def play(*patterns: str, patience: float = 1.0) -> list[CheckResult]:
        assert patience == 1.0
        return [CheckResult(Check("k.one.habit", "MUST", "1", ""), "passed")]

    results = await results_with(["k.one.habit"], ["k.one.*"], play)
    assert complaint("Quiet", ["k.one.habit"], results) == (
        "Quiet: not noticed by ['k.one.habit']; wrongly noticed by none"
    )
