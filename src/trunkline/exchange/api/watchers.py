"""Who is watching a session right now, and on which wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.exchange.api.endpoint import ApiCall, ApiEndpoint
from trunkline.exchange.api.schemas import MOMENT, TEXT, array, obj
from trunkline.exchange.api.sessions import row_of


async def list_watchers(call: ApiCall) -> Mapping[str, Any]:
    """`GET /api/sessions/{id}/watchers`. Nobody watches a session that is asleep."""
    row = await row_of(call)
    live = call.exchange.switchboard.live(row.id)
    seats = () if live is None else sorted(live.seats, key=lambda seat: seat.since)
    return {"watchers": [{"who": seat.by, "wire": seat.wire, "since": seat.since} for seat in seats if seat.wire]}


ENDPOINTS = (
    ApiEndpoint(
        "GET", "/api/sessions/{id}/watchers", list_watchers, "observer", "Who watches a session, and on which wire",
        answer=obj(watchers=array(obj(who=TEXT, wire=TEXT, since=MOMENT))), statuses=(404,),
    ),
)  # fmt: skip
