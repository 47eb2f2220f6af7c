"""Agents: their names and their health."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from trunkline.base import shapes
from trunkline.core.faults import Fault
from trunkline.exchange.api.endpoint import ApiCall, ApiEndpoint
from trunkline.exchange.api.schemas import FLAG, TEXT, array, maybe, obj
from trunkline.exchange.directory import MAKING_SECONDS, AgentEntry


async def list_agents(call: ApiCall) -> Mapping[str, Any]:
    """`GET /api/agents`. Agents that were never used are created first: only then is their health known."""
    unmade = [entry for entry in call.exchange.directory.entries if entry.capabilities is None]
    if unmade:
        making = [asyncio.create_task(_make(entry), name=f"make {entry.name}") for entry in unmade]
        _, late = await asyncio.wait(making, timeout=MAKING_SECONDS)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)
    return {"agents": [await about(entry) for entry in call.exchange.directory.entries]}


async def _make(entry: AgentEntry) -> None:
    # Its entry says what is wrong.
    with suppress(Fault):
        await entry.agent()


async def about(entry: AgentEntry) -> Mapping[str, Any]:
    """What a list says of an agent."""
    capabilities = entry.capabilities
    healthy, last_error = await entry.health()
    return {
        "name": entry.name,
        "kind": entry.settings.kind,
        "description": entry.settings.description,
        "healthy": healthy,
        "last_error": last_error or None,
        "capabilities": {} if capabilities is None else shapes.encode(capabilities),
    }


_AGENT = obj(
    name=TEXT, kind=TEXT, description=TEXT, healthy=FLAG, last_error=maybe(TEXT), capabilities={"type": "object"}
)

ENDPOINTS = (
    ApiEndpoint("GET", "/api/agents", list_agents, "observer", "The agents", answer=obj(agents=array(_AGENT))),
)  # fmt: skip
