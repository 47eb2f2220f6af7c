"""The pulse of a stream to one client: a sign of life where nothing is said, and an end where the client takes nothing.

pulse = StreamPulse(wake.set, HEARTBEAT_SECONDS, STALLED_SECONDS)
async with pulse.beating():
    await pulse.send(send, data)        # and ALIVE, whenever `pulse.is_due`
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager, suppress
from typing import Any

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class StreamPulse:
    """For one stream."""

    def __init__(self, wake: Callable[[], None], look_seconds: float, stalled_seconds: float) -> None:
        """
        Args:
            wake: called when a sign of life is due.
            look_seconds: how often is looked whether the stream was silent since the last time.
            stalled_seconds: after how long a client that takes nothing is gone.
        """
        self.is_due = False
        """Whether a sign of life is due."""
        self._wake = wake
        self._look_seconds = look_seconds
        self._stalled_seconds = stalled_seconds
        self._was_silent = False
        """Whether nothing was sent since the last look."""
        self._began_sending: float | None = None

    def said(self) -> None:
        """Something went to the client by another way than `send`."""
        self._was_silent = False

    async def send(self, send: Send, data: bytes, *, more: bool = True) -> None:
        """Send a piece of the answer's body."""
        self._was_silent = self.is_due = False
        self._began_sending = asyncio.get_running_loop().time()
        await send({"type": "http.response.body", "body": data, "more_body": more})
        self._began_sending = None

    @asynccontextmanager
    async def beating(self) -> AsyncIterator[None]:
        """Watch over the stream for the duration of the block. It is cut off if the client is gone."""
        loop = asyncio.get_running_loop()
        looking: asyncio.TimerHandle | None = None

        def look() -> None:
            nonlocal looking
            looking = loop.call_later(self._look_seconds, look)
            if self._began_sending is not None and loop.time() - self._began_sending >= self._stalled_seconds:
                patience.reschedule(loop.time())
            elif self._was_silent:
                self.is_due = True
                self._wake()
            self._was_silent = True

        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(None) as patience:
                    look()
                    yield
        finally:
            if looking is not None:
                looking.cancel()
