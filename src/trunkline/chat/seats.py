"""How many turns may run at once, over all chats: each is an agent, and most agents are processes."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

#: More agents at once than one machine and one owner's account at a provider are good for.
MOST_TURNS = 32


class Seats:
    """A limited number of seats, given in the order in which they were asked for."""

    def __init__(self, most: int = MOST_TURNS) -> None:
        self.most = most
        self._free = most
        self._waiting: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def taken(self, stopping: asyncio.Event, on_wait: Callable[[], None]) -> AsyncIterator[bool]:
        """Have a seat for the time of the block. False: it was stopped before there was one.

        `on_wait` is called if none is free now.
        """
        if self._free:
            self._free -= 1
            seated = True
        else:
            on_wait()
            seated = await self._given(stopping)
        try:
            yield seated
        finally:
            if seated:
                self._give()

    async def _given(self, stopping: asyncio.Event) -> bool:
        seat = asyncio.get_running_loop().create_future()
        self._waiting.append(seat)
        stopped = asyncio.ensure_future(stopping.wait())
        try:
            await asyncio.wait({seat, stopped}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if seat.done():
                self._give()
            raise
        finally:
            stopped.cancel()
            if not seat.done():
                self._waiting.remove(seat)
        return seat.done()

    def _give(self) -> None:
        if self._waiting:
            self._waiting.popleft().set_result(None)
        else:
            self._free += 1
