"""All bad habits of agents."""

from __future__ import annotations

# Importing a module registers its habits.
from tests.conform.agentproc import broken_agents_lines, broken_agents_turns
from tests.conform.agentproc.habits_of_agents import HABITS

__all__ = ["HABITS", "broken_agents_lines", "broken_agents_turns"]
