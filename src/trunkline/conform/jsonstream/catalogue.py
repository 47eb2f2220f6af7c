"""All checks of the JSON stream, in the order in which they are reported."""

from __future__ import annotations

# Importing a module registers its checks.
from trunkline.conform.jsonstream import (
    approvals,
    bad_lines,
    dialect,
    ending,
    history,
    order,
    ready,
    sessions,
    shapes,
    stopping,
    tools,
    turns,
)
from trunkline.conform.jsonstream.suite import SUITE

__all__ = ["SUITE"]

_MODULES = (approvals, bad_lines, dialect, ending, history, order, ready, sessions, shapes, stopping, tools, turns)

#: The second part of the ids, in the order of the protocol document as far as it has one.
_GROUPS = (
    "ready", "flags", "start", "line", "shape", "turn", "text", "usage", "error", "tool", "grant", "deny", "mode",
    "stop", "history", "bad", "eof", "sigterm", "dialect",
)  # fmt: skip

SUITE.arrange(lambda check: _GROUPS.index(check.id.split(".")[1]))
