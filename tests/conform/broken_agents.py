"""Every agent with a bad habit. Standard library only, so that a process is there at once."""

from __future__ import annotations

from tests.conform import broken_approvals, broken_ends, broken_lines, broken_stops, broken_tools, broken_turns
from tests.conform.habits import HABITS

__all__ = ["HABITS"]

_MODULES = (broken_approvals, broken_ends, broken_lines, broken_stops, broken_tools, broken_turns)
