"""Who may use which place of an engine, and who waits.

An engine reads and writes in a few places at once. What it read last in a place is still there, so whoever comes back
to the same place need not have it read again: each node goes back to its own, as long as nobody else was given it.
Where all are taken, those who wait are served in the order in which they came.
"""

from __future__ import annotations

import asyncio
from weakref import ref

from trunkline.core.graph import queueing
from trunkline.models.engines import Slot


class SlotPool:
    """So many places, numbered from 0. For one event loop."""

    def __init__(self, count: int) -> None:
        self._owners: list[ref[Slot] | None] = [None] * count
        # The one that was used the longest time ago is the first.
        self._idle = list(range(count))
        self._waiting: list[tuple[asyncio.Future[int], Slot | None]] = []

    @property
    def idle(self) -> int:
        """How many are free."""
        return len(self._idle)

    @property
    def waiting(self) -> int:
        """How many wait for one."""
        return sum(not turn.done() for turn, _ in self._waiting)

    async def take(self, slot: Slot | None) -> int:
        """A place: the slot's own one, else one that nobody owns, else the one that was unused for longest.

        One that is still at work for the slot itself, on something that was given up, is waited for: that is over
        soon, and to read everything again elsewhere is not.
        """
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[int] = loop.create_future()
        self._waiting.append((turn, slot))
        self._serve()
        if turn.done():
            return turn.result()
        began = loop.time()
        try:
            place = await turn
        except asyncio.CancelledError:
            # It may have been given a place in the very moment in which it was cancelled.
            if turn.done() and not turn.cancelled():
                self.give(turn.result())
            raise
        queueing.waited(loop.time() - began)
        return place

    def give(self, place: int) -> None:
        """The place is free again."""
        self._idle.append(place)
        self._serve()

    def forget(self, slot: Slot) -> None:
        """The slot will not come back."""
        for place in range(len(self._owners)):
            if self._owner(place) is slot:
                self._owners[place] = None

    def _serve(self) -> None:
        """Give what is free to those who wait, in their order."""
        waiting, self._waiting = self._waiting, []
        for turn, slot in waiting:
            if turn.done():
                continue
            place = self._choose(slot)
            if place is None:
                self._waiting.append((turn, slot))
            else:
                self._idle.remove(place)
                self._owners[place] = None if slot is None else ref(slot)
                turn.set_result(place)

    def _choose(self, slot: Slot | None) -> int | None:
        if slot is not None:
            for place in range(len(self._owners)):
                if self._owner(place) is slot:
                    return place if place in self._idle else None
        unowned = (place for place in self._idle if self._owner(place) is None)
        return next(unowned, self._idle[0] if self._idle else None)

    def _owner(self, place: int) -> Slot | None:
        owner = self._owners[place]
        return None if owner is None else owner()
