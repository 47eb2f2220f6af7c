"""All checks of Tryll servers, in the order in which they are reported."""

from __future__ import annotations

# Importing a module registers its checks.
from trunkline.conform.tryll import (
    additions,
    agents,
    framing,
    graphs,
    models,
    nodes,
    params,
    session,
    storages,
    turns,
    verifying,
    voice,
    wire,
)
from trunkline.conform.tryll.suite import SUITE

__all__ = ["SUITE"]

_MODULES = (
    additions, agents, framing, graphs, models, nodes, params, session, storages, turns, verifying, voice, wire,
)  # fmt: skip

#: The second part of the ids, in the order in which a client meets them.
_GROUPS = (
    "session", "frame", "verify", "agent", "turn", "graph", "param", "storage", "embedded", "model", "node", "wire",
    "extra", "voice",
)  # fmt: skip

SUITE.arrange(lambda check: _GROUPS.index(check.id.split(".")[1]))
