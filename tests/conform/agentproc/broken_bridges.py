"""All bad habits of bridges."""

from __future__ import annotations

# Importing a module registers its habits.
from tests.conform.agentproc import broken_bridges_ends, broken_bridges_reading, broken_bridges_starts
from tests.conform.agentproc.habits_of_bridges import HABITS

__all__ = ["HABITS", "broken_bridges_ends", "broken_bridges_reading", "broken_bridges_starts"]
