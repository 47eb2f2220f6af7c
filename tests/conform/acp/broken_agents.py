"""All bad habits of agents."""

from __future__ import annotations

# Importing a module registers its habits.
from tests.conform.acp import broken_beginnings, broken_keeping, broken_tools, broken_turns
from tests.conform.acp.habits_of_agents import HABITS

__all__ = ["HABITS", "broken_beginnings", "broken_keeping", "broken_tools", "broken_turns"]
