"""The bad habits of OpenAI-compatible servers. Checks are named without their `openai.`."""

from __future__ import annotations

from tests.conform.bad_habits import Habits

HABITS = Habits("openai.")
habit = HABITS.habit
