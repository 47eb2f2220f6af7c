"""Turns across all sessions: what was asked and answered, to be searched; and a turn of a graph, drawn."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from starlette.responses import Response

from trunkline.base.plain_words import phrases, places_of
from trunkline.core.events import Envelope, Extension, Gap, TurnEnded
from trunkline.core.faults import ConfigError
from trunkline.core.graph.turns import TURN_DIAGNOSTICS
from trunkline.core.keeper import LISTED
from trunkline.exchange.api.endpoint import ApiCall, ApiEndpoint, number
from trunkline.exchange.api.errors import ApiRefused
from trunkline.exchange.api.schemas import COUNT, MOMENT, TEXT, array, obj
from trunkline.exchange.api.sessions import OUTCOMES, check_outcome, row_of
from trunkline.exchange.directory import AgentEntry
from trunkline.exchange.turn_rows import MOST_TURNS, TurnQuery, TurnRow

#: Characters of a snippet, and how many of them stand before what was found.
SNIPPET, LEAD = 240, 60


async def list_turns(call: ApiCall) -> Mapping[str, Any]:
    """`GET /api/turns`."""
    return {"turns": await found_turns(call, call.number("limit", 1, MOST_TURNS) or LISTED)}


async def found_turns(call: ApiCall, limit: int) -> list[Mapping[str, Any]]:
    """The turns that a query asks for, newest first, as `GET /api/turns` tells them.

    Raises:
        Refused: it asks for what cannot be.
    """
    before = call.number("before", 0)
    turns = call.exchange.switchboard.turns
    if before is not None and not await turns.exists(before):
        raise ApiRefused(404, f"There is no turn {before} here. Begin again without `before`.")
    words, outcome = call.query("q") or "", call.query("outcome")
    check_outcome(outcome)
    wanted = TurnQuery(words, call.query("agent"), outcome, call.query("by"), before)
    terms = phrases(words)
    return [_members(row, terms) for row in await turns.find(wanted, limit)]


async def draw_turn(call: ApiCall) -> Response:
    """`GET /api/sessions/{id}/turns/{turn}/graph.svg`."""
    turn = number("`turn`", str(call.request.path_params["turn"]), 1)
    row = await row_of(call)
    view = call.exchange.switchboard.peek(row.id)
    found = await asyncio.to_thread(_diagnostics, view.records, turn)
    if found is None:
        raise ApiRefused(404, f"Nothing is known of the way that turn {turn} took through a graph.")
    picture = await _drawn(call.exchange.directory.find(row.agent), turn, found)
    return Response(picture, 200, _PICTURE, "image/svg+xml")


def _diagnostics(records: Iterable[Envelope | Gap], turn: int) -> Mapping[str, Any] | None:
    """What a turn of a graph tells of its way; the last, if it tells it more than once."""
    found: Mapping[str, Any] | None = None
    for record in records:
        if not isinstance(record, Envelope) or record.turn != turn:
            continue
        match record.event:
            case Extension(kind=kind, data=data) if kind == TURN_DIAGNOSTICS:
                found = data
            case TurnEnded():
                break
    return found


async def _drawn(entry: AgentEntry, turn: int, found: Mapping[str, Any]) -> str:
    # Imported only where there is one: it takes long.
    from trunkline.agents.graph.conversation import GraphFileAgent
    from trunkline.agents.graph.drawing import recorded, svg

    agent = await entry.agent()
    if not isinstance(agent, GraphFileAgent):
        raise ApiRefused(404, f"The agent `{entry.name}` is not a graph.")
    graph, title = agent.file.graph, f"{entry.name}, turn {turn}"
    try:
        return await asyncio.to_thread(lambda: svg.draw(graph, title=title, turn=recorded.read(dict(found))))
    except ConfigError as error:
        raise ApiRefused(422, f"The turn cannot be drawn, since the graph is another by now: {error}") from None


def _members(row: TurnRow, terms: list[list[str]]) -> Mapping[str, Any]:
    return {
        "number": row.number,
        "session": row.session,
        "turn": row.turn,
        "seq": row.seq,
        "agent": row.agent,
        "by": row.by_person,
        "began_at": row.began_at,
        "ended_at": row.ended_at,
        "outcome": row.outcome,
        "cause": row.cause,
        "message": row.message,
        "answer": row.answer,
        "snippet": snippet(terms, row) if terms else "",
    }


def snippet(terms: list[list[str]], row: TurnRow) -> str:
    """The passage of a turn in which words of a query stand first, as one line of plain text; the beginning of its
    message, if only their accents and signs are others than those that were looked for."""
    for text in (row.message, row.answer):
        if found := places_of(terms, text, 1):
            start = max(0, found[0][0] - LEAD)
            end = start + SNIPPET
            shown = " ".join(text[start:end].split())
            return f"{'… ' if start else ''}{shown}{' …' if end < len(text) else ''}"
    return " ".join(row.message[:SNIPPET].split())


#: It refers to nothing outside of it and runs nothing; its style is its own.
_PICTURE = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
}

_TURN = obj(
    number=COUNT,
    session=TEXT,
    turn=COUNT,
    seq=COUNT,
    agent=TEXT,
    by=TEXT,
    began_at=MOMENT,
    ended_at=MOMENT,
    outcome={"enum": list(OUTCOMES)},
    cause=TEXT,
    message=TEXT,
    answer=TEXT,
    snippet=TEXT,
)
_QUERY = {
    "q": TEXT,
    "agent": TEXT,
    "outcome": {"enum": list(OUTCOMES)},
    "by": TEXT,
    "before": COUNT,
    "limit": {"type": "integer", "minimum": 1, "maximum": MOST_TURNS},
}

ENDPOINTS = (
    ApiEndpoint(
        "GET", "/api/turns", list_turns, "observer", "The turns that have ended in all sessions, newest first",
        query=_QUERY, answer=obj(turns=array(_TURN)), statuses=(404,),
    ),
    ApiEndpoint(
        "GET", "/api/sessions/{id}/turns/{turn}/graph.svg", draw_turn, "observer",
        "The way that a turn took through the agent's graph, as a picture",
        answer={"type": "string", "contentMediaType": "image/svg+xml"}, statuses=(404, 422, 500),
    ),
)  # fmt: skip
