"""The tool calls that nobody was asked about: the policy answered, so that only their beginning is among the events."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, get_args

from trunkline.core.events import Category, Envelope, Gap, ToolJudged
from trunkline.exchange.api.endpoint import ApiCall, ApiEndpoint
from trunkline.exchange.api.schemas import COUNT, TEXT, array, obj
from trunkline.exchange.api.sessions import row_of

#: The most calls in one answer; `since` gives the next ones.
MOST_LISTED = 1000

VERDICTS = ("allow", "deny")


async def list_calls(call: ApiCall) -> Mapping[str, Any]:
    """`GET /api/sessions/{id}/calls`."""
    row = await row_of(call)
    since = call.number("since", 0) or 0
    live = call.exchange.switchboard.live(row.id)
    if since and live is not None:
        # Whoever watches asks again and again for the few that are new: no reason to read the log from its beginning.
        with suppress(ValueError):
            live.session.flush()
            new = live.session.read(since, live.session.shown, judged=True)
            return {"calls": list(islice(_judged(new, since), MOST_LISTED))}
    records = call.exchange.switchboard.peek(row.id).records
    return {"calls": await asyncio.to_thread(lambda: list(islice(_judged(records, since), MOST_LISTED)))}


def _judged(records: Iterator[Envelope | Gap], since: int) -> Iterator[Mapping[str, Any]]:
    for item in records:
        if isinstance(item, Envelope) and item.seq > since and isinstance(item.event, ToolJudged):
            event = item.event
            yield {
                "seq": item.seq,
                "turn": item.turn,
                "call_id": event.call_id,
                "name": event.name,
                "category": event.category,
                "args": event.args,
                "description": event.description,
                "verdict": event.verdict,
                "why": event.why,
            }


_CALL = obj(
    seq=COUNT,
    turn=COUNT,
    call_id=TEXT,
    name=TEXT,
    category={"enum": list(get_args(Category))},
    args={"type": "object"},
    description=TEXT,
    verdict={"enum": list(VERDICTS)},
    why=TEXT,
)

ENDPOINTS = (
    ApiEndpoint(
        "GET", "/api/sessions/{id}/calls", list_calls, "observer", "Calls that nobody was asked about, oldest first",
        query={"since": {"type": "integer", "minimum": 0}}, answer=obj(calls=array(_CALL)), statuses=(404, 422, 500),
    ),
)  # fmt: skip
