"""The inbox: what all agents ask for, and who decided what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.exchange.api.approvals import CATEGORIES
from trunkline.exchange.api.endpoint import ApiCall
from trunkline.exchange.console.page import ConsolePage

#: What a category is called where people choose one.
CATEGORY_NAMES = {
    "info": "Look something up",
    "edit": "Change files",
    "exec": "Run commands",
    "mcp": "Tools of servers",
}


async def approvals(call: ApiCall) -> Mapping[str, Any]:
    """`GET /approvals`."""
    agents = [entry.name for entry in call.exchange.directory.entries]
    if (asked := call.query("agent")) is not None and asked not in agents:
        # One that was taken out of the file may have left decisions behind.
        agents.append(asked)
    return {"agents": agents, "categories": [(each, CATEGORY_NAMES[each]) for each in CATEGORIES]}


PAGES = (ConsolePage("/approvals", approvals, "approvals.html"),)
