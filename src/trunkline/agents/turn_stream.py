"""One turn as a task that says events and an iterator that gives them out: for agents that do several things at once.

    async def work(tell: TurnStream) -> TurnEnded:
        await tell.say(TextDelta("hello"))
        return TurnEnded("success")

    return TurnStream(work)                    # what `Conversation.turn` returns

The work never runs far ahead of whoever takes the events. `cancel` ends it as a user's stop does: the work is cancelled
and may put its things in order, and the turn ends with `TurnEnded("cancelled")`, soon even if the work does not.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Self

from trunkline.core.events import Event, TurnEnded
from trunkline.core.usage import Usage

#: Events that the work may be ahead of their reader.
AHEAD = 16
#: How long the work may put its things in order after a stop; a session waits a little longer than that for the end.
ORDER_SECONDS = 0.5


class TurnStream:
    """The events of one turn, as they are told."""

    def __init__(self, work: Callable[[TurnStream], Awaitable[TurnEnded]]) -> None:
        self._work = work
        self._said: deque[Event] = deque()
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._task: asyncio.Task[TurnEnded] | None = None
        self._cancelled = False
        self._ended = False
        self.usage: Usage | None = None
        """What was used so far: what a cancelled turn reports."""

    # For the work.

    async def say(self, event: Event) -> None:
        """Tell an event; waits while the reader is behind."""
        if self.full:
            await self.room()
        self.say_now(event)

    @property
    def full(self) -> bool:
        """Whether the reader is behind."""
        return len(self._said) >= AHEAD and not self._ended

    async def room(self) -> None:
        """Wait until the reader has caught up."""
        while self.full:
            self._room.clear()
            await self._room.wait()

    def say_now(self, event: Event) -> None:
        """Tell an event without waiting: for rare ones, such as signs of life."""
        if not self._ended:
            self._said.append(event)
            self._news.set()

    # For the conversation and its session.

    def cancel(self) -> None:
        """Stop soon. What was said and not yet taken is still given, and then the end."""
        self._cancelled = True
        self._news.set()
        if self._task is not None:
            self._task.cancel()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        if self._ended:
            raise StopAsyncIteration
        if self._task is None and not self._cancelled:
            self._task = asyncio.get_running_loop().create_task(_call(self._work, self), name="turn of an agent")
            self._task.add_done_callback(lambda _: self._news.set())
        while not self._said:
            if self._cancelled or self._task is None or self._task.done():
                return await self._end()
            self._news.clear()
            await self._news.wait()
        event = self._said.popleft()
        self._room.set()
        return event

    async def aclose(self) -> None:
        """Leave for good: the work is cancelled. It is not waited for longer than for a stop."""
        self._leave()
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=ORDER_SECONDS)

    async def finished(self, seconds: float) -> bool:
        """Wait until the work is over, however it ended, but no longer than that; whether it is."""
        if self._task is None:
            return True
        await asyncio.wait({self._task}, timeout=seconds)
        return self._task.done()

    def _leave(self) -> None:
        """Nobody listens any more: who still has something to say need not wait for that."""
        self._ended = True
        self._room.set()

    async def _end(self) -> Event:
        self._leave()
        if self._task is not None and not self._task.done():
            await asyncio.wait({self._task}, timeout=ORDER_SECONDS)
        if self._cancelled:
            if self._task is not None and self._task.done() and not self._task.cancelled():
                # Marks it as seen: what it raised because of the stop is nobody's concern.
                self._task.exception()
            return TurnEnded("cancelled", self.usage)
        if self._task is None:
            raise RuntimeError("a turn that was not cancelled has begun")
        return self._task.result()


async def _call(work: Callable[[TurnStream], Awaitable[TurnEnded]], tell: TurnStream) -> TurnEnded:
    return await work(tell)
