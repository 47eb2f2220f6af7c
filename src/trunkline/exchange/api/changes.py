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


class SharedLook:
    """Something that many watch, made once for all of them whenever its time has come."""

    def __init__(self, made: Made, seconds: float) -> None:
        """`seconds`: how often is looked whether it has changed."""
        self._made = made
        self._seconds = seconds
        self._making = asyncio.Lock()
        self._round = -1
        self._latest = b""

    async def latest(self) -> bytes:
        """As JSON, as it was found in this round."""
        async with self._making:
            if (now := self._now()) != self._round:
                self._latest = jsontext.dumps(await self._made())
                self._round = now
            return self._latest

    @property
    def rest(self) -> float:
        """The seconds until the next round."""
        return self._seconds - asyncio.get_running_loop().time() % self._seconds

    def _now(self) -> int:
        return int(asyncio.get_running_loop().time() / self._seconds)


def changes(call: ApiCall, event: str, look: SharedLook) -> Response:
    """A stream of events of that name."""
    if call.request.method == "HEAD":
        return Response(headers=HEADERS, media_type=MEDIA_TYPE)
    closing: asyncio.Event = call.request.app.state.streams.closing
    return StreamingResponse(_told(call, event, look, closing), headers=HEADERS, media_type=MEDIA_TYPE)


async def _told(call: ApiCall, event: str, look: SharedLook, closing: asyncio.Event) -> AsyncIterator[bytes]:
    before, silent = b"", 0.0
    while not closing.is_set() and await still_known(call.exchange, call.request.scope) == call.person:
        now = await look.latest()
        if now != before:
            before, silent = now, 0.0
            yield f"event: {event}\ndata: ".encode() + now + b"\n\n"
        elif silent >= ALIVE_SECONDS:
            silent = 0.0
            yield b": alive\n\n"
        seconds = look.rest
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await closing.wait()
        silent += seconds
