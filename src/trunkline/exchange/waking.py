"""After a start: the sessions in which something waits are woken, beside everything else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from trunkline.base import backoff
from trunkline.core.faults import Fault

logger = logging.getLogger(__name__)

#: How many sessions are woken at once after a start: agents may be programs, which compete for the processors.
WOKEN_AT_ONCE = 16
#: Before a session is tried again whose agent may be had later, in seconds: at first, and at most.
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 30.0
#: How long after a start somebody who asks about a session waits until it is awake. Programs start within that time;
#: one that hangs must not hold up every list.
AWAITED_SECONDS = 5.0


class Waking:
    """One start. Whoever wants a session meanwhile finds it as always: it is woken once."""

    def __init__(
        self,
        find: Callable[[str], Awaitable[object]],
        gave_up: Callable[[str, str], Awaitable[None]],
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """`find` wakes a session; `gave_up` hears of one that cannot be woken, and why."""
        self._find = find
        self._gave_up = gave_up
        self._pause = pause
        self._asleep: dict[str, asyncio.Task[None]] = {}
        """Those that are still to be woken."""
        self._pausing: set[str] = set()
        """Those of them that wait for their next try."""
        self._untried: set[str] = set()
        self._all_tried = asyncio.Event()
        self._until = 0.0

    def begin(self, sessions: Iterable[str]) -> None:
        """Wake these, and at once: also those that are to be tried again later."""
        self._until = asyncio.get_running_loop().time() + AWAITED_SECONDS
        wanted = set(sessions)
        for id in wanted & self._pausing:
            self._pausing.discard(id)
            self._asleep.pop(id).cancel()
        new = sorted(wanted - self._asleep.keys())
        self._untried.update(new)
        room = asyncio.Semaphore(WOKEN_AT_ONCE)
        for id in new:
            self._asleep[id] = asyncio.create_task(self._wake(id, room), name="wake a session")

    async def over(self) -> None:
        """Wait until each is awake or given up, or has to be tried again later."""
        if self._untried:
            await self._all_tried.wait()

    async def awaited(self, sessions: Iterable[str] | None = None) -> None:
        """Wait until these, or all, are awake or given up; no longer than `AWAITED_SECONDS` after the start.

        Before that, what is known about them is what the last process left: a call may seem to wait for an answer that
        nobody can use any more.
        """
        asked = self._asleep.keys() if sessions is None else self._asleep.keys() & set(sessions)
        if tasks := [self._asleep[id] for id in asked]:
            await asyncio.wait(tasks, timeout=max(0.0, self._until - asyncio.get_running_loop().time()))

    async def close(self) -> None:
        """Wake no more."""
        if tasks := tuple(self._asleep.values()):
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        self._asleep.clear()
        self._all_tried.set()

    async def _wake(self, id: str, room: asyncio.Semaphore) -> None:
        tries = 0
        while not await self._is_over(id, room):
            tries += 1
            self._pausing.add(id)
            await self._pause(backoff.delay(tries, FIRST_PAUSE, LONGEST_PAUSE))
            self._pausing.discard(id)
        del self._asleep[id]

    async def _is_over(self, id: str, room: asyncio.Semaphore) -> bool:
        """Try one; whether it is awake or given up. What waits in it must not end for a failure that passes."""
        async with room:
            try:
                await self._find(id)
            except Exception as error:
                logger.warning("session %s cannot continue: %s", id, error)
                if isinstance(error, Fault) and error.retryable:
                    return False
                await self._gave_up(id, f"The agent cannot come back: {error}")
            finally:
                self._untried.discard(id)
                if not self._untried:
                    self._all_tried.set()
        return True
