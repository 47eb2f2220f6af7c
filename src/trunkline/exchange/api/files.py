"""Files that somebody brings to a session, to be named in a message."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from trunkline.base.asgi_answers import Refused
from trunkline.base.asgi_body import bounded_body
from trunkline.base.visible import inline
from trunkline.exchange.api.endpoint import ApiCall, ApiEndpoint
from trunkline.exchange.api.errors import ApiRefused
from trunkline.exchange.api.schemas import COUNT, TEXT, obj
from trunkline.exchange.api.sessions import row_of

#: The largest file: a picture of a whole screen has a few million bytes, and it is held in memory on its way.
MAX_FILE = 20 * 1024 * 1024
#: How long it may take to arrive, from a phone.
FILE_SECONDS = 120
#: Of a name, what is told again.
SHOWN_NAME_CHARS = 100


async def bring_file(call: ApiCall) -> Mapping[str, Any]:
    """`POST /api/sessions/{id}/files`. Where it is kept has nothing of its name but the ending: names are anything."""
    row = await row_of(call)
    name = call.query("name") or ""
    try:
        data = await bounded_body(call.request, MAX_FILE, FILE_SECONDS)
    except Refused as refused:
        raise ApiRefused(refused.status, f"{refused.message}.", headers=refused.headers) from None
    path = await asyncio.to_thread(call.exchange.switchboard.store.keep_file, row.id, name, data)
    return {"path": path, "name": inline(name, SHOWN_NAME_CHARS), "size": len(data)}


ENDPOINTS = (
    ApiEndpoint(
        "POST", "/api/sessions/{id}/files", bring_file, "talker", "Bring a file, to be named in a message",
        query={"name": TEXT}, answer=obj(path=TEXT, name=TEXT, size=COUNT), statuses=(404, 408, 413),
    ),
)  # fmt: skip
