"""Who is watching a network of several servers: each follows what is written through any of them, in the audit trail.

The trail is looked at while somebody watches, every quarter of a second, and at once after a write of this server. It
is numbered in the order of the commits, so nothing is missed: neither what a server wrote that died right after it, nor
what happened while the database could not be reached.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from trunkline.network import hints
from trunkline.network.live import Hint, Live, Watcher
from trunkline.store.database import Database, DatabaseGone, Transaction

logger = logging.getLogger(__name__)

#: How often to look for what other servers wrote. A page is to show it within a second.
LOOK_SECONDS = 0.25
#: After the database could not be asked.
PAUSE_SECONDS = 1.0


class TrailLive(Live):
    """All who watch at this server."""

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database
        self._written = asyncio.Event()
        self._seen: int | None = None
        """The number of the last entry that the watchers were told of; None while nobody watches."""
        self._beginning = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def watching(self, community_id: str | None = None) -> Iterator[Watcher]:
        try:
            with super().watching(community_id) as watcher:
                yield watcher
        finally:
            if not self._watchers and self._task is not None:
                self._task.cancel()

    def tell(self, kind: str, community_id: str, data: Mapping[str, Any]) -> None:
        """Look now: what happened is in the trail, and told from there."""
        self.told_of[kind] += 1
        self.told.set()
        self._written.set()

    async def since(self, community_id: str | None, number: int | None) -> list[Hint]:
        # Under a lock: of two that begin at once, one must not forget what the other one was promised.
        async with self._beginning:
            if self._task is None or self._task.done() or self._task.cancelling():
                self._seen = await self._database.read(hints.last)
                self._task = asyncio.create_task(self._follow(), name="follow the audit trail")
        if number is None:
            return []
        (found, _, more), last = await self._database.read(lambda tx: (hints.read(tx, number), hints.last(tx)))
        if more:
            # Whoever is told so reads everything anew.
            return [Hint("gap", community_id or "", {}, last)]
        return [hint for hint in found if community_id in (None, hint.community_id)]

    async def close(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    async def _follow(self) -> None:
        while True:
            seconds = LOOK_SECONDS
            self._written.clear()
            try:
                while await self._look():
                    pass
            except DatabaseGone as error:
                logger.warning("live updates wait for the database: %s", error)
                seconds = PAUSE_SECONDS
            except Exception:  # whatever it is, the next look may be better, and nothing is missed until then
                logger.exception("live updates could not be told; it will be tried again")
                seconds = PAUSE_SECONDS
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._written.wait()

    async def _look(self) -> bool:
        """Tell what is new; and say whether there is more."""
        seen = self._seen or 0

        def work(tx: Transaction) -> tuple[list[Hint], int, bool]:
            return hints.read(tx, seen)

        found, self._seen, more = await self._database.read(work)
        for hint in found:
            self._hand_out(hint)
        return more
