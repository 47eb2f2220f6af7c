"""How many turns may run at once, over all chats: each is an agent, and most agents are processes."""

from __future__ import annotations

import asyncio
from collections import deque

#: More agents at once than one machine and one owner's account at a provider are good for.
MOST_TURNS = 32


class AgentSlot:
    """What one turn needs to run. `granted` is set when it may."""

    def __init__(self) -> None:
        self.granted = asyncio.Event()


class TurnLimiter:
    """A limited number of slots, granted in the order in which they were asked for."""

    def __init__(self, most: int = MOST_TURNS) -> None:
        self.most = most
        self._free = most
        self._waiting: deque[AgentSlot] = deque()

    def request(self) -> AgentSlot:
        """Ask for a slot: granted now, if one is free. It has to be released, granted or not."""
        slot = AgentSlot()
        self._waiting.append(slot)
        self._grant()
        return slot

    def release(self, slot: AgentSlot) -> None:
        """It is needed no longer."""
        if slot.granted.is_set():
            self._free += 1
            self._grant()
        else:
            self._waiting.remove(slot)

    def _grant(self) -> None:
        while self._free and self._waiting:
            self._free -= 1
            self._waiting.popleft().granted.set()
