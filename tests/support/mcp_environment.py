"""Environments with programs of other people. A test that cannot have its environment does not go on."""

from __future__ import annotations

from pathlib import Path

import environments
from environments import INSTALL_SECONDS
from tests.conftest import require

__all__ = ["CURRENT", "INSTALL_SECONDS", "PROXIED", "environment"]

#: With the first generation of the MCP SDK, and a proxy that serves any of them by HTTP.
PROXIED = ("mcp==1.30.0", "mcp-proxy==0.13.0", "mcp-server-time==2026.8.18")
#: With the second generation of the SDK.
CURRENT = ("mcp==2.3.0", "mcp-server-git==2026.10.19")


def environment(requirements: tuple[str, ...]) -> Path:
    """The folder of the programs of an environment that holds these."""
    problem = ""
    place = Path()
    try:
        place = environments.environment(requirements)
    except environments.NotInstalled as error:
        problem = str(error)
    require(", ".join(requirements), not problem, f"they could not be installed: {problem}")
    return place
