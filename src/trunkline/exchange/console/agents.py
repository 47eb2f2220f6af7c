"""The agents: what each is and how it does; and for each, how to reach it, its log, and a new beginning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.exchange.agent_log import MOST_LINES
from trunkline.exchange.api.agent import details, ways
from trunkline.exchange.api.endpoint import ApiCall
from trunkline.exchange.console.page import ConsolePage

#: Capabilities in words, in the order in which they are shown.
ABILITIES = {
    "approval": "asks before it acts",
    "thinking": "shows what it thinks",
    "steerable": "reads messages in the middle of a turn",
    "resume": "goes on with earlier conversations",
    "continues": "goes on after a restart of the exchange",
    "images": "sees pictures",
    "voice": "hears and speaks",
    "mcp": "uses MCP servers",
    "sandbox": "runs commands in a sandbox",
}


async def agents(call: ApiCall) -> Mapping[str, Any]:
    """`GET /agents`. What has to be made for it, the page asks for itself."""
    return {"agents": [await details(call, entry) for entry in call.exchange.directory.entries]}


async def agent(call: ApiCall) -> Mapping[str, Any]:
    """`GET /agents/{id}`."""
    entry = call.exchange.directory.find(call.id)
    return {
        "agent": await details(call, entry),
        "abilities": ABILITIES,
        "ways": ways(call),
        "has_tokens": bool(call.exchange.settings.people),
        "most_lines": MOST_LINES,
    }


PAGES = (ConsolePage("/agents", agents, "agents.html"), ConsolePage("/agents/{id}", agent, "agent.html"))
