"""After a start: the sessions in which something waits are woken, beside everything else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

logger = logging.getLogger(__name__)

#: How many sessions are woken at once after a start: agents may be programs, which compete for the processors.
WOKEN_AT_ONCE = 16


class Waking:
    """One start. Whoever wants a session meanwhile finds it as always: it is woken once."""

    def __init__(
        self, find: Callable[[str], Awaitable[object]], gave_up: Callable[[str, str], Awaitable[None]]
    ) -> None:
        """`find` wakes a session; `gave_up` hears of one that cannot be woken, and why."""
        self._find = find
        self._gave_up = gave_up
        self._task: asyncio.Task[None] | None = None

    def begin(self, sessions: Iterable[str]) -> None:
        """Wake these."""
        self._task = asyncio.create_task(self._wake(sorted(sessions)), name="wake sessions")

    async def over(self) -> None:
        """Wait until all are awake, or given up."""
        if self._task is not None:
            await asyncio.shield(self._task)

    async def close(self) -> None:
        """Wake no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _wake(self, sessions: list[str]) -> None:
        room = asyncio.Semaphore(WOKEN_AT_ONCE)

        async def wake(id: str) -> None:
            async with room:
                try:
                    await self._find(id)
                except Exception as error:
                    logger.warning("session %s cannot continue: %s", id, error)
                    await self._gave_up(id, f"The agent cannot come back: {error}")

        await asyncio.gather(*map(wake, sessions))
