"""Work on sessions: one at a time for each, and to its end, also when the one who asked for it has gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from trunkline.core.faults import AgentBusy

T = TypeVar("T")


class Doors:
    """All that is under way."""

    def __init__(self) -> None:
        self._doors: dict[str, _Door] = {}
        self._under_way: set[asyncio.Task[Any]] = set()
        self._closed = False

    async def whole(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something to its end: half of it would be a mess.

        Raises:
            AgentBusy: they are closed.
        """
        if self._closed:
            work.close()
            raise AgentBusy("The exchange is closing.")
        task = asyncio.create_task(work, name="work on a session")
        self._under_way.add(task)
        task.add_done_callback(self._over)
        return await asyncio.shield(task)

    @asynccontextmanager
    async def alone(self, session_id: str) -> AsyncIterator[None]:
        """Whoever comes meanwhile waits."""
        door = self._doors.setdefault(session_id, _Door())
        door.users += 1
        try:
            async with door.lock:
                yield
        finally:
            door.users -= 1
            if not door.users:
                del self._doors[session_id]

    async def close(self) -> None:
        """Begin nothing more, and wait for what is under way."""
        self._closed = True
        while self._under_way:
            await asyncio.wait(self._under_way)

    def _over(self, task: asyncio.Task[Any]) -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            # Whoever waited has it; if nobody did any more, it is nobody's.
            task.exception()


class _Door:
    """What those wait at who want to be alone with a session."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0
