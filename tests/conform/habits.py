"""The bad habits of agents of JSON stream."""

from __future__ import annotations

from tests.conform.bad_habits import Habits

HABITS = Habits()
habit = HABITS.habit
