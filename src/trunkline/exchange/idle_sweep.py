"""Lets go of sessions that nobody has used for a while, so that their agents' programs need not run."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from trunkline.exchange.doors import Doors
from trunkline.exchange.live_session import LiveSession

logger = logging.getLogger(__name__)

#: How often is looked, at most.
SWEEP_SECONDS = 30.0


class IdleSweep:
    """Looks again and again, from `start` to `close`."""

    def __init__(
        self,
        doors: Doors,
        at_work: Callable[[], Iterable[LiveSession]],
        let_go: Callable[[LiveSession], Coroutine[Any, Any, None]],
        evict_seconds: Callable[[], float],
    ) -> None:
        """`evict_seconds` gives how long an unused session stays."""
        self._doors = doors
        self._at_work = at_work
        self._let_go = let_go
        self._evict_seconds = evict_seconds
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.create_task(self._run(), name="let go of idle sessions")

    async def close(self) -> None:
        """Stop. Idempotent."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(SWEEP_SECONDS, self._evict_seconds()))
            for live in self._at_work():
                if live.is_idle and loop.time() - live.used >= self._evict_seconds():
                    try:
                        await self._doors.whole(self._let_go(live))
                    except Exception:
                        logger.exception("session %s could not be let go of in good order", live.id)
