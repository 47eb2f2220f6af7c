"""How turns make room for others: all sessions of a server share its event loop, and most nodes wait for nothing.

All turns of a loop together have so much time of each of its rounds. A turn that comes when it is used up stands in
line, and each round one of those goes on. So a server with a thousand turns that go round and round still answers
everybody else, however long those take.
"""

from __future__ import annotations

import asyncio
from collections import deque
from time import perf_counter
from weakref import WeakKeyDictionary

#: Seconds of one round. A node that has begun is not interrupted.
SHARE_SECONDS = 0.005


class LoopBudget:
    """The time that the turns of one event loop have. `of_loop` gives the one that there is."""

    # The loop is not kept: it would be there as long as its shares, and those are there as long as it is.

    def __init__(self) -> None:
        self._since = 0.0
        """When this round began for turns. 0 while none has asked; otherwise its end is on its way."""
        self._line: deque[asyncio.Future[None]] = deque()

    def used_up(self) -> bool:
        """Whether others should have their turn. To be asked before each node that may have to wait."""
        now = perf_counter()
        if not self._since:
            self._begin(now)
            return False
        return now - self._since > SHARE_SECONDS

    async def wait(self) -> None:
        """Stand in line until it is time to go on."""
        if not self._since:
            self._begin(perf_counter())
        place = asyncio.get_running_loop().create_future()
        self._line.append(place)
        await place

    def _begin(self, now: float) -> None:
        self._since = now
        asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        """A round is over: the first in line goes on in the next one."""
        self._since = 0.0
        while self._line:
            place = self._line.popleft()
            if not place.done():
                place.set_result(None)
                self._begin(perf_counter())
                return


_SHARES: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopBudget] = WeakKeyDictionary()


def of_loop() -> LoopBudget:
    """What the turns of the running loop share."""
    loop = asyncio.get_running_loop()
    found = _SHARES.get(loop)
    if found is None:
        found = _SHARES[loop] = LoopBudget()
    return found
