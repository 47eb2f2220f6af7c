"""All checks of agents, in the order in which they are reported."""

from __future__ import annotations

# Importing a module registers its checks.
from trunkline.conform.agentproc.agent import ending, events, lines, permission, sessions, turns
from trunkline.conform.agentproc.agent.suite import SUITES

__all__ = ["SUITES"]

_MODULES = (ending, events, lines, permission, sessions, turns)

#: The second part of the ids, in the order of the protocol document as far as it has one.
_GROUPS = (
    "turn", "attach", "stdin", "line", "event", "body", "session", "stream", "permission", "error", "exit", "term",
)  # fmt: skip

for _suite in SUITES.values():
    _suite.arrange(lambda check: _GROUPS.index(check.id.split(".")[1]))
