"""All checks of bridges, in the order in which they are reported."""

from __future__ import annotations

# Importing a module registers its checks.
from trunkline.conform.agentproc.bridge import (
    environment,
    errors,
    partials,
    placeholders,
    reading,
    sessions,
    starting,
    timeouts,
    truncation,
)
from trunkline.conform.agentproc.bridge.suite import SUITE

__all__ = ["SUITE"]

_MODULES = (environment, errors, partials, placeholders, reading, sessions, starting, timeouts, truncation)

#: The second part of the ids, in the order of the protocol document as far as it has one.
_GROUPS = (
    "run", "place", "env", "stdin", "body", "session", "partial", "error", "exit", "timeout", "tree", "cut",
)  # fmt: skip

SUITE.arrange(lambda check: _GROUPS.index(check.id.split(".")[1]))
