"""Agents: their names and their health."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.base import shapes
from trunkline.exchange.api.endpoint import ApiCall, ApiEndpoint
from trunkline.exchange.api.schemas import FLAG, TEXT, array, maybe, obj
from trunkline.exchange.directory import MAKING_SECONDS, AgentEntry


async def list_agents(call: ApiCall) -> Mapping[str, Any]:
    """`GET /api/agents`. Agents that were never used are created first: only then is their health known."""
    await call.exchange.directory.look(MAKING_SECONDS)
    return {"agents": [await about(entry) for entry in call.exchange.directory.entries]}


async def about(entry: AgentEntry) -> Mapping[str, Any]:
    """What a list says of an agent."""
    capabilities = entry.capabilities
    healthy, last_error = await entry.health()
    return {
        "name": entry.name,
        "kind": entry.settings.kind,
        "description": entry.settings.description,
        "healthy": healthy,
        "known": entry.is_known,
        "last_error": last_error or None,
        "capabilities": {} if capabilities is None else shapes.encode(capabilities),
    }


KNOWN = {"type": "boolean", "description": "Whether it was tried: before, `healthy` is what one hopes."}
_AGENT = obj(
    name=TEXT, kind=TEXT, description=TEXT, healthy=FLAG, known=KNOWN, last_error=maybe(TEXT),
    capabilities={"type": "object"},
)  # fmt: skip

ENDPOINTS = (
    ApiEndpoint("GET", "/api/agents", list_agents, "observer", "The agents", answer=obj(agents=array(_AGENT))),
)  # fmt: skip
