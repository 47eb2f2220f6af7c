"""Agents: their names, their health, and what they have used."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from trunkline.base import shapes
from trunkline.core.faults import Fault
from trunkline.exchange.api.endpoint import ApiCall, ApiEndpoint
from trunkline.exchange.api.errors import ApiRefused
from trunkline.exchange.api.schemas import COUNT, FLAG, TEXT, array, maybe, obj
from trunkline.exchange.directory import MAKING_SECONDS, AgentEntry

#: What usage can be grouped by.
BY = ("agent", "day", "person", "model")


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
    return {"agents": [await _members(entry) for entry in call.exchange.directory.entries]}


async def _make(entry: AgentEntry) -> None:
    # Its entry says what is wrong.
    with suppress(Fault):
        await entry.agent()


async def usage(call: ApiCall) -> Mapping[str, Any]:
    """`GET /api/usage`."""
    by = call.query("by") or "agent"
    if by not in BY:
        raise ApiRefused(400, f"`by` must be one of {', '.join(f'`{known}`' for known in BY)}.")
    await call.exchange.switchboard.written()
    return {"usage": await call.exchange.budgets.usage(by)}


async def _members(entry: AgentEntry) -> Mapping[str, Any]:
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
_USAGE = obj(
    turns=COUNT,
    input_tokens=COUNT,
    output_tokens=COUNT,
    cache_read_tokens=COUNT,
    cache_write_tokens=COUNT,
    usd={"type": "number"},
)
_NUMBER = {"type": "number"}
_BUDGET = {"type": "object", "additionalProperties": obj(used=_NUMBER, limit=_NUMBER)}
_USAGE_OR_MORE = {**_USAGE, "properties": {**_USAGE["properties"], "budget": _BUDGET}}

ENDPOINTS = (
    ApiEndpoint("GET", "/api/agents", list_agents, "observer", "The agents", answer=obj(agents=array(_AGENT))),
    ApiEndpoint(
        "GET", "/api/usage", usage, "observer", "What was used", query={"by": {"enum": list(BY)}},
        answer=obj(usage=array(_USAGE_OR_MORE)),
    ),
)  # fmt: skip
