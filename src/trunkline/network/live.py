"""Who is watching, and what they are told: a hint that something changed, never the thing itself.

A watcher has a bounded queue. One that does not keep up loses hints, learns that it did (`gap`), and reads anew.

What is here is for one process, which learns of a change because it made it. See `following` for several.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from trunkline.base.values import Value

#: Hints that wait for a slow watcher. A page that is further behind than this reads everything anew.
MAX_WAITING = 100


class Hint(Value):
    """Something happened in a community: `kind` is `thread`, `comment`, `status`, `issued` or `gap`."""

    kind: str
    community_id: str
    data: Mapping[str, Any]
    number: int | None = None
    """Its place among all, where they are counted: whoever comes back says it, and gets those after it."""


class Watcher:
    """One who watches."""

    def __init__(self, community_id: str | None) -> None:
        self.community_id = community_id
        self._queue: asyncio.Queue[Hint] = asyncio.Queue(MAX_WAITING)
        self._missed = False

    async def next(self) -> Hint:
        """Wait for the next hint."""
        if self._missed and self._queue.empty():
            self._missed = False
            return Hint("gap", self.community_id or "", {})
        return await self._queue.get()

    def tell(self, hint: Hint) -> None:
        """Take a hint, or remember that one was lost."""
        try:
            self._queue.put_nowait(hint)
        except asyncio.QueueFull:
            self._missed = True


class Live:
    """All who watch. Belongs to the event loop."""

    def __init__(self) -> None:
        self._watchers: set[Watcher] = set()
        self.told = asyncio.Event()
        """Set whenever something happened; cleared by the one who delivers it to webhooks."""
        self.told_of: Counter[str] = Counter()
        """How often this process made something happen, by kind."""

    @property
    def open(self) -> int:
        """How many watch."""
        return len(self._watchers)

    @contextmanager
    def watching(self, community_id: str | None = None) -> Iterator[Watcher]:
        """Watch one community, or all, until the block is left."""
        watcher = Watcher(community_id)
        self._watchers.add(watcher)
        try:
            yield watcher
        finally:
            self._watchers.discard(watcher)

    def tell(self, kind: str, community_id: str, data: Mapping[str, Any]) -> None:
        """Tell all whom it concerns. Call it after the commit."""
        self.told_of[kind] += 1
        self._hand_out(Hint(kind, community_id, data))

    async def since(self, community_id: str | None, number: int | None) -> list[Hint]:
        """What a watcher of one community, or of all, has missed since a hint of that number. Ask it while watching.

        Raises:
            DatabaseGone: it cannot be told now.
        """
        return []

    async def close(self) -> None:
        """End what goes on beside the watchers."""

    def _hand_out(self, hint: Hint) -> None:
        self.told.set()
        for watcher in self._watchers:
            if watcher.community_id in (None, hint.community_id):
                watcher.tell(hint)
