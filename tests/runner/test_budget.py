"""How many cycles a day has."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.core.faults import ConfigError
from trunkline.runner.budget import Budget, daily_limit

DAY = 24 * 60 * 60


def test_a_spent_budget_waits_for_midnight() -> None:
    now = [10 * DAY + 3600.0]
    budget = Budget(clock=lambda: now[0])
    assert budget.wait(2) == 0
    budget.spend()
    assert (budget.spent, budget.wait(2)) == (1, 0)
    budget.spend()
    assert (budget.spent, budget.wait(2), budget.wait(None)) == (2, DAY - 3600, 0)
    now[0] = 11 * DAY + 1.0
    assert (budget.spent, budget.wait(2)) == (0, 0)


def test_what_was_spent_elsewhere_counts_too() -> None:
    now = [10 * DAY + 3600.0]
    budget = Budget(clock=lambda: now[0])
    budget.count(3)
    budget.spend()
    # What was counted there may be older than what is known here.
    budget.count(2)
    assert (budget.spent, budget.wait(4)) == (4, DAY - 3600)
    now[0] += DAY
    budget.count(1)
    assert budget.spent == 1


def test_a_limit_is_a_number_of_cycles_or_none() -> None:
    assert daily_limit({}) is None
    assert daily_limit({"runtime": {"maxCyclesPerDay": 24}}) == 24
    wrong: tuple[Any, ...] = (0, -1, True, "many", [], 1e400)
    for limit in wrong:
        with pytest.raises(ConfigError, match="maxCyclesPerDay"):
            daily_limit({"runtime": {"maxCyclesPerDay": limit}})
