"""What can be made from a session: a fork, a handover to another agent, a script, an explanation."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from trunkline.base import shapes
from trunkline.base.values import Value
from trunkline.exchange.api.endpoint import MAX_NUMBER, ApiCall, ApiEndpoint
from trunkline.exchange.api.errors import ApiRefused
from trunkline.exchange.api.schemas import COUNT, MOMENT, TEXT, array, obj
from trunkline.exchange.api.sessions import about, row_of
from trunkline.exchange.explaining import explained
from trunkline.exchange.forked_events import NoSuchEvent
from trunkline.exchange.forking import fork
from trunkline.exchange.handover import hand_over
from trunkline.exchange.recording import recorded


class NewFork(Value):
    """A new session with the events through `at`; with all of them, if left out."""

    at: int | None = None


class NewHandover(Value):
    """The agent that takes over."""

    to: str


async def fork_session(call: ApiCall) -> Mapping[str, Any]:
    """`POST /api/sessions/{id}/fork`."""
    wanted = await call.body(NewFork)
    if wanted.at is not None and not 0 <= wanted.at <= MAX_NUMBER:
        raise ApiRefused(400, "`at` must be the number of an event.")
    try:
        row = await fork(call.exchange.switchboard, call.id, wanted.at, call.person.name)
    except NoSuchEvent as error:
        raise ApiRefused(400, str(error)) from None
    return {"id": row.id, "agent": row.agent}


async def hand_over_session(call: ApiCall) -> Mapping[str, Any]:
    """`POST /api/sessions/{id}/handover`."""
    wanted = await call.body(NewHandover)
    live = await hand_over(call.exchange.switchboard, call.id, wanted.to, call.person.name)
    return {"id": live.id, "agent": live.agent}


async def script_of_session(call: ApiCall) -> Mapping[str, Any]:
    """`GET /api/sessions/{id}/script`."""
    row = await row_of(call)
    view = call.exchange.switchboard.peek(row.id)
    found = await asyncio.to_thread(recorded, view.records, row.agent)
    return {"script": found.script, "left_out": found.left_out}


async def explain_session(call: ApiCall) -> Mapping[str, Any]:
    """`GET /api/sessions/{id}/explanation`."""
    row = await row_of(call)
    switchboard = call.exchange.switchboard
    await switchboard.written()
    approvals = await switchboard.approvals.found(session=row.id)
    acts = await switchboard.acts.of(row.id)
    view = switchboard.peek(row.id)
    story = await asyncio.to_thread(explained, about(row), view.records, approvals, acts)
    return shapes.encode(story)


_MADE = obj(id=TEXT, agent=TEXT)
_ENTRY = obj(at=MOMENT, seq=COUNT, turn=COUNT, kind=TEXT, who=TEXT, text=TEXT)
_TURN = obj(turn=COUNT, by=TEXT, message=TEXT, began_at=MOMENT, outcome=TEXT, cause=TEXT)
_OBJECT = {"type": "object"}

ENDPOINTS = (
    ApiEndpoint(
        "POST", "/api/sessions/{id}/fork", fork_session, "admin", "A new session that begins as this one did", NewFork,
        answer=_MADE, statuses=(404, 422, 500, 503),
    ),
    ApiEndpoint(
        "POST", "/api/sessions/{id}/handover", hand_over_session, "admin", "Hand over to another agent", NewHandover,
        answer=_MADE, statuses=(404, 409, 422, 500, 501, 503),
    ),
    ApiEndpoint(
        "GET", "/api/sessions/{id}/script", script_of_session, "observer", "The session as a script",
        answer=obj(script=_OBJECT, left_out=_OBJECT), statuses=(404, 422, 500),
    ),
    ApiEndpoint(
        "GET", "/api/sessions/{id}/explanation", explain_session, "observer",
        "One timeline of what everybody did, with the cause of every end",
        answer=obj(
            session=_OBJECT, turns=array(_TURN), timeline=array(_ENTRY), left_out=COUNT, people=array(TEXT)
        ),
        statuses=(404, 422, 500),
    ),
)  # fmt: skip
