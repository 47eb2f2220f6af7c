"""Something that changes, as Server-Sent Events: told at once, and again whenever it is another.

Who watches is few, and what they watch is small: it is made anew and compared, which works whichever node of a cluster
has changed it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from starlette.responses import Response, StreamingResponse

from trunkline.base import jsontext
from trunkline.exchange.api.auth import still_known
from trunkline.exchange.api.endpoint import ApiCall
from trunkline.exchange.api.events import HEADERS, MEDIA_TYPE

#: How often something is said at least.
ALIVE_SECONDS = 10.0

#: Gives the JSON object as it is now.
Made = Callable[[], Awaitable[Mapping[str, Any]]]


def changes(call: ApiCall, event: str, made: Made, seconds: float) -> Response:
    """A stream of events of that name. `seconds`: how often is looked whether it has changed."""
    if call.request.method == "HEAD":
        return Response(headers=HEADERS, media_type=MEDIA_TYPE)
    closing: asyncio.Event = call.request.app.state.streams.closing
    return StreamingResponse(_told(call, event, made, seconds, closing), headers=HEADERS, media_type=MEDIA_TYPE)


async def _told(call: ApiCall, event: str, made: Made, seconds: float, closing: asyncio.Event) -> AsyncIterator[bytes]:
    before, silent = b"", 0.0
    while not closing.is_set() and await still_known(call.exchange, call.request.scope) == call.person:
        now = jsontext.dumps(await made())
        if now != before:
            before, silent = now, 0.0
            yield f"event: {event}\ndata: ".encode() + now + b"\n\n"
        elif silent >= ALIVE_SECONDS:
            silent = 0.0
            yield b": alive\n\n"
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await closing.wait()
        silent += seconds
