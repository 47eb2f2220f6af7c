"""What is going on in the whole exchange: what waits for somebody, what is running, the agents and their budgets, and
what runs beside it; once, or whenever it has changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from trunkline.exchange.api import approvals as approval_routes
from trunkline.exchange.api.agents import KNOWN
from trunkline.exchange.api.changes import SharedLook, changes
from trunkline.exchange.api.endpoint import ApiCall, ApiEndpoint
from trunkline.exchange.api.events import MEDIA_TYPE
from trunkline.exchange.api.schemas import COUNT, FLAG, MOMENT, TEXT, array, maybe, obj
from trunkline.exchange.api.sessions import about
from trunkline.exchange.approvals import ApprovalFilter
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.live_session import LiveSession
from trunkline.exchange.service import SENTENCES, Service
from trunkline.exchange.turn_rows import TurnRow

#: How often is looked whether something has changed, while somebody watches.
LOOK_SECONDS = 0.7
#: How long a failed turn is worth telling, and how many are told.
FAILED_MS, MOST_FAILED = 24 * 3600 * 1000, 20
#: Of everything else.
MOST_SHOWN = 200
#: The longest text of a message in it.
LONGEST_TEXT = 300


async def overview(call: ApiCall) -> Mapping[str, Any]:
    """`GET /api/overview`."""
    return await _made(call.exchange)


def shared(exchange: Exchange) -> SharedLook:
    """What all watch who watch an exchange."""
    return SharedLook(lambda: _made(exchange), LOOK_SECONDS)


async def watch(call: ApiCall) -> Response:
    """`GET /api/overview/events`."""
    return changes(call, "overview", call.request.app.state.overview)


async def _made(exchange: Exchange) -> dict[str, Any]:
    board = exchange.switchboard
    pending = await board.approvals.listed(ApprovalFilter("pending"), MOST_SHOWN)
    failed = await board.turns.failed(exchange.clock() - FAILED_MS, MOST_FAILED)
    busy = {*await board.busy(), *(live.id for live in board.at_work if live.session.turn)}
    running = []
    for id in sorted(busy)[:MOST_SHOWN]:
        if (row := await board.row(id)) is not None:
            running.append({**about(row), **_doing(board.live(id))})
    # Whoever looks on is told how they do when that is known.
    exchange.directory.look_soon()
    return {
        "approvals": [approval_routes.members(each) for each in pending],
        "failed": [_failed(each) for each in failed],
        "running": running,
        "agents": await _agents(exchange),
        "services": [_beside(service) for service in exchange.beside],
    }


async def _agents(exchange: Exchange) -> list[dict[str, Any]]:
    used, told = exchange.budgets.standing(), []
    for entry in exchange.directory.entries:
        healthy, last_error = await entry.health()
        told.append({
            "name": entry.name,
            "kind": entry.settings.kind,
            "description": entry.settings.description,
            "healthy": healthy,
            "known": entry.is_known,
            "last_error": last_error or None,
            "budget": used.get(entry.name, {}),
        })  # fmt: skip
    return told


def _doing(live: LiveSession | None) -> dict[str, Any]:
    if live is None:
        return {"state": "running", "turn": 0, "message": ""}
    turn = live.session.turn
    begun = live.session.state.open_turns.get(turn)
    text = begun.message.text[:LONGEST_TEXT] if begun is not None else ""
    return {"state": live.session.status.value, "turn": turn, "message": live.session.clean(text)}


def _failed(row: TurnRow) -> dict[str, Any]:
    return {
        "session": row.session,
        "turn": row.turn,
        "agent": row.agent,
        "by": row.by_person,
        "ended_at": row.ended_at,
        "outcome": row.outcome,
        "cause": row.cause[:LONGEST_TEXT],
        "message": row.message[:LONGEST_TEXT],
    }


def _beside(service: Service) -> dict[str, Any]:
    has_page = service.trial.partition(" ")[0] in SENTENCES
    where = service.where
    return {"name": service.name, "about": service.about, "where": where, "page": where if has_page else None}


_OBJECT = {"type": "object"}
_PAGE = {"type": "string", "description": "The same address, if people can look at it there."}
_OVERVIEW = obj(
    approvals=array(_OBJECT),
    failed=array(
        obj(session=TEXT, turn=COUNT, agent=TEXT, by=TEXT, ended_at=MOMENT, outcome=TEXT, cause=TEXT, message=TEXT)
    ),
    running=array(obj(id=TEXT, agent=TEXT, state=TEXT, turn=COUNT, message=TEXT)),
    agents=array(
        obj(name=TEXT, kind=TEXT, description=TEXT, healthy=FLAG, known=KNOWN, last_error=maybe(TEXT), budget=_OBJECT)
    ),
    services=array(obj(name=TEXT, about=TEXT, where=TEXT, page=maybe(_PAGE))),
)

ENDPOINTS = (
    ApiEndpoint(
        "GET", "/api/overview", overview, "observer",
        "What waits for somebody, what is running, the agents and their budgets, and what runs beside them",
        answer=_OVERVIEW,
    ),
    ApiEndpoint(
        "GET", "/api/overview/events", watch, "observer", "The same whenever it has changed, as Server-Sent Events",
        answer={"type": "string", "contentMediaType": MEDIA_TYPE},
    ),
)  # fmt: skip
