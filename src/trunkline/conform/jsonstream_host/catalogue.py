"""All checks of hosts, in the order in which they are reported."""

from __future__ import annotations

# Importing a module registers its checks.
from trunkline.conform.jsonstream_host import commands, ending, starting, tools, turns
from trunkline.conform.jsonstream_host.suite import SUITE

__all__ = ["SUITE"]

_MODULES = (commands, ending, starting, tools, turns)

#: The second part of the ids, in the order of the protocol document as far as it has one.
_GROUPS = (
    "turn", "ready", "start", "version", "line", "message", "history", "text", "event", "tool", "error", "crash",
    "stderr", "end",
)  # fmt: skip

SUITE.arrange(lambda check: _GROUPS.index(check.id.split(".")[1]))
