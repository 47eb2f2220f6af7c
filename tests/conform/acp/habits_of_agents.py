"""The bad habits of agents that speak ACP. Checks are named without their `acp.`."""

from __future__ import annotations

from tests.conform.bad_habits import Habits

HABITS = Habits("acp.")
habit = HABITS.habit
