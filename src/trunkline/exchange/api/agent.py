"""One agent: what it is, how to reach it, what was said about it; and a new beginning for it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from trunkline.base import shapes
from trunkline.base.values import Value
from trunkline.exchange.agent_log import MOST_LINES
from trunkline.exchange.api.agents import KNOWN, about
from trunkline.exchange.api.endpoint import ApiCall, ApiEndpoint
from trunkline.exchange.api.schemas import COUNT, FLAG, MOMENT, TEXT, array, maybe, obj
from trunkline.exchange.directory import MAKING_SECONDS, AgentEntry
from trunkline.exchange.ways_in import WayIn, ways_in

#: The service beside an exchange where people talk to agents by voice.
TALK = "talk"


class AgentRestart(Value):
    """How to restart an agent. `now`: also in the middle of a turn."""

    now: bool = False


async def show_agent(call: ApiCall) -> Mapping[str, Any]:
    """`GET /api/agents/{id}`."""
    entry = call.exchange.directory.find(call.id)
    await _made(entry)
    return await details(call, entry)


async def details(call: ApiCall, entry: AgentEntry) -> Mapping[str, Any]:
    """What is known of an agent now."""
    settings, exchange = entry.settings, call.exchange
    # Which folders this machine has concerns those who run it.
    is_admin = call.person.may("admin")
    ours = [live for live in exchange.switchboard.at_work if live.agent == entry.name]
    model = (entry.capabilities.model if entry.capabilities else "") or str(entry.options.get("model") or "")
    voiced = entry.capabilities is not None and entry.capabilities.voice
    talk = next((service.where for service in exchange.beside if service.name == TALK), None)
    return {
        **await about(entry),
        "agent": exchange.redactor.text(settings.agent if is_admin else settings.kind),
        "workspace": settings.workspace if is_admin else None,
        "mode": settings.mode or "default",
        "allow": None if settings.allow is None else list(settings.allow),
        "nodes": None if settings.nodes is None else list(settings.nodes),
        "provider": str(entry.options.get("provider") or "") or None,
        "model": exchange.redactor.text(model) or None,
        "budget": exchange.budgets.standing().get(entry.name, {}),
        "awake": len(ours),
        "busy": sum(bool(live.session.turn) for live in ours),
        "talk": talk if voiced else None,
    }


def ways(call: ApiCall) -> list[WayIn]:
    """How to reach the agent of a request. What is for the machine of the exchange names its folders: only an admin is
    told, since nobody else would be there.

    Raises:
        UnknownAgent: there is none of that name.
    """
    exchange, name = call.exchange, call.exchange.directory.find(call.id).name
    found = ways_in(exchange.settings, exchange.address, exchange.environ, name, exchange.reached)
    return [way for way in found if not way.is_here or call.person.may("admin")]


async def reach(call: ApiCall) -> Mapping[str, Any]:
    """`GET /api/agents/{id}/reach`."""
    return {"ways": [shapes.encode(way) for way in ways(call)]}


async def log(call: ApiCall) -> Mapping[str, Any]:
    """`GET /api/agents/{id}/log`."""
    entry = call.exchange.directory.find(call.id)
    limit = call.number("limit", 1, MOST_LINES) or MOST_LINES
    return {"lines": [shapes.encode(line) for line in call.exchange.directory.logs.of(entry.name, limit)]}


async def restart(call: ApiCall) -> Mapping[str, Any]:
    """`POST /api/agents/{id}/restart`."""
    wanted = await call.body(AgentRestart)
    directory = call.exchange.directory
    name = directory.find(call.id).name
    # First: a session that is woken meanwhile has the new one.
    directory.renew(name)
    let_go, kept = await call.exchange.switchboard.let_go_of(name, now=wanted.now)
    directory.logs.note(name, "info", f"Restarted by {call.person.name}: let go of {let_go} sessions, kept {kept}.")
    entry = directory.find(name)
    await _made(entry)
    healthy, last_error = await entry.health()
    return {"let_go": let_go, "kept": kept, "healthy": healthy, "last_error": last_error or None}


async def _made(entry: AgentEntry) -> None:
    """Its health is known once it was made; who only looks does not wait long for that."""
    with suppress(TimeoutError):
        async with asyncio.timeout(MAKING_SECONDS):
            await entry.look()


_WAY = obj(wire=TEXT, title=TEXT, text=TEXT, is_command=FLAG, is_here=FLAG)
_LINE = obj(at=MOMENT, level=TEXT, text=TEXT, session=TEXT)
_DETAILS = obj(
    name=TEXT, kind=TEXT, description=TEXT, healthy=FLAG, known=KNOWN, last_error=maybe(TEXT),
    capabilities={"type": "object"}, agent=TEXT, workspace=maybe(TEXT), mode=TEXT, allow=maybe(array(TEXT)),
    nodes=maybe(array(TEXT)), provider=maybe(TEXT), model=maybe(TEXT), budget={"type": "object"}, awake=COUNT,
    busy=COUNT, talk=maybe(TEXT),
)  # fmt: skip

ENDPOINTS = (
    ApiEndpoint(
        "GET", "/api/agents/{id}", show_agent, "observer", "One agent", answer=_DETAILS, statuses=(404,),
    ),
    ApiEndpoint(
        "GET", "/api/agents/{id}/reach", reach, "observer", "How to reach it by each wire",
        answer=obj(ways=array(_WAY)), statuses=(404,),
    ),
    ApiEndpoint(
        "GET", "/api/agents/{id}/log", log, "observer", "The latest of what was said about it, oldest first",
        query={"limit": {"type": "integer", "minimum": 1, "maximum": MOST_LINES}}, answer=obj(lines=array(_LINE)),
        statuses=(404,),
    ),
    ApiEndpoint(
        "POST", "/api/agents/{id}/restart", restart, "admin", "Release its sessions, and create it again", AgentRestart,
        answer=obj(let_go=COUNT, kept=COUNT, healthy=FLAG, last_error=maybe(TEXT)), statuses=(404,),
    ),
)  # fmt: skip
