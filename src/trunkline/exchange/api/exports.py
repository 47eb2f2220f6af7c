"""Sessions to take along: as JSON lines, as Markdown, or as one page for a browser."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from typing import get_args

from starlette.responses import Response, StreamingResponse

from trunkline.core.exporting import ExportFormat, exported
from trunkline.exchange.api.endpoint import ApiCall, ApiEndpoint
from trunkline.exchange.api.errors import ApiRefused
from trunkline.exchange.api.sessions import row_of

FORMATS: tuple[ExportFormat, ...] = get_args(ExportFormat)

#: What is sent at once. Reading on is worth a thread then.
CHUNK = 64 * 1024

_MEDIA: dict[ExportFormat, str] = {
    "jsonl": "application/x-ndjson",
    "md": "text/markdown; charset=utf-8",
    "html": "text/html; charset=utf-8",
}
#: Of the characters of a session's id those that every system takes for a file's name.
_UNNAMED = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME = 80

_HEADERS = {
    "Cache-Control": "no-store",
    # Also where a browser opens it instead of keeping it.
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
}


async def export_session(call: ApiCall) -> Response:
    """`GET /api/sessions/{id}/export`."""
    wanted = call.query("format") or FORMATS[0]
    form = next((known for known in FORMATS if known == wanted), None)
    if form is None:
        raise ApiRefused(400, f"`format` must be one of {', '.join(f'`{known}`' for known in FORMATS)}.")
    row = await row_of(call)
    view = call.exchange.switchboard.peek(row.id)
    name = _UNNAMED.sub("-", row.id)[:_LONGEST_NAME].lstrip(".") or "session"
    headers = {**_HEADERS, "Content-Disposition": f'attachment; filename="{name}.{form}"'}
    return StreamingResponse(_chunks(exported(view.info, view.records, form)), 200, headers, _MEDIA[form])


async def _chunks(lines: Iterator[bytes]) -> AsyncIterator[bytes]:
    while chunk := await asyncio.to_thread(_some, lines):
        yield chunk


def _some(lines: Iterator[bytes]) -> bytes:
    found, size = [], 0
    for line in lines:
        found.append(line + b"\n")
        size += len(line) + 1
        if size >= CHUNK:
            break
    return b"".join(found)


_ANSWERS = [{"type": "string", "contentMediaType": each.partition(";")[0]} for each in _MEDIA.values()]

ENDPOINTS = (
    ApiEndpoint(
        "GET", "/api/sessions/{id}/export", export_session, "observer", "The session as a file to keep",
        query={"format": {"enum": list(FORMATS)}}, answer={"anyOf": _ANSWERS},
        statuses=(404, 422, 500),
    ),
)  # fmt: skip
