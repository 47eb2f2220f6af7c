"""Work on sessions: one task at a time per session, completed even if the caller has gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from trunkline.core.faults import AgentBusy, MayBeDone

T = TypeVar("T")


class Doors:
    """All work in progress."""

    def __init__(self) -> None:
        self._doors: dict[str, _Door] = {}
        self._under_way: set[asyncio.Task[Any]] = set()
        self._closed = False

    async def whole(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something to completion: stopping halfway would leave a mess.

        Raises:
            AgentBusy: the exchange is closing.
            MayBeDone: it was cut off by something else than its caller, and nobody knows how far it came.
        """
        if self._closed:
            work.close()
            raise AgentBusy("The exchange is closing.")
        task = asyncio.create_task(work, name="work on a session")
        self._under_way.add(task)
        task.add_done_callback(self._over)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if task.cancelled() and caller is not None and not caller.cancelling():
                # A client of this exchange would take it for its own, and be left without an answer.
                raise MayBeDone("This was cut off, and may have been done.", retryable=True) from None
            raise

    @asynccontextmanager
    async def alone(self, session_id: str) -> AsyncIterator[None]:
        """Others wait in the meantime."""
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
        """Start nothing more, and wait for the work in progress."""
        self._closed = True
        while self._under_way:
            await asyncio.wait(self._under_way)

    def _over(self, task: asyncio.Task[Any]) -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            # The next one waiting has it; if there is none, it is free.
            task.exception()


class _Door:
    """A lock for exclusive work on one session."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0
