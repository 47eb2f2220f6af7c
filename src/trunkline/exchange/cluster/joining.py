"""An exchange among others: it answers them, takes over from those that die, and knows what all have used."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from trunkline.core.faults import Fault
from trunkline.exchange.budgets import Budgets
from trunkline.exchange.cluster.answering import NodeAnswers
from trunkline.exchange.cluster.cluster import Cluster
from trunkline.exchange.cluster.draining import Draining
from trunkline.exchange.switchboard import Switchboard
from trunkline.store.database import DatabaseError

logger = logging.getLogger(__name__)

#: How often is looked for what the others have used, and what they kept for sessions that are ours: whoever was told
#: that it was taken in waits for the answer.
LOOK_SECONDS = 5.0
#: How many looks later sessions that nobody has are looked for although no node is known to have died: each look asks
#: about every session with a turn in progress.
LOOKS = 6
#: The longest wait before a dead node's sessions are taken: so that the living share them.
SPREAD_SECONDS = 0.5


@asynccontextmanager
async def joined(board: Switchboard, budgets: Budgets, cluster: Cluster) -> AsyncIterator[None]:
    """Be a node for the duration of the block.

    Raises:
        ConfigError: another node of that name is alive.
    """
    draining = Draining(board, cluster)
    watch = _Watch(board, budgets, cluster)
    cluster.lost = board.abandon
    cluster.changed = watch.wake
    await cluster.join(NodeAnswers(board, cluster, draining))
    watching = asyncio.create_task(watch.run(), name="take over from nodes that died")
    try:
        yield
    finally:
        await draining.close()
        watching.cancel()
        await asyncio.wait({watching})


class _Watch:
    """Looks again and again for what nobody does."""

    def __init__(self, board: Switchboard, budgets: Budgets, cluster: Cluster) -> None:
        self._board = board
        self._budgets = budgets
        self._cluster = cluster
        self._woken = asyncio.Event()
        self._looks = 0
        """Until sessions that nobody has are looked for."""

    def wake(self) -> None:
        """A node has died, or this one is back: look soon."""
        self._looks = 0
        self._woken.set()

    async def run(self) -> None:
        while True:
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._woken.wait()
                await asyncio.sleep(random.uniform(0, SPREAD_SECONDS))  # noqa: S311  (nobody gains by knowing it)
            except TimeoutError:
                pass
            self._woken.clear()
            try:
                await self._look()
            except (Fault, DatabaseError) as error:
                logger.info("it cannot be seen which sessions nobody has: %s", error)
            except Exception:
                logger.exception("the sessions of nodes that died could not be taken over")

    async def _look(self) -> None:
        at_work = sum(not live.is_followed for live in self._board.at_work)
        if at_work != self._cluster.me.sessions:
            self._cluster.nodes.me = self._cluster.me.replace(sessions=at_work)
        await self._budgets.refresh()
        self._looks -= 1
        if not self._cluster.nodes.is_held:
            # Its sessions may be others', and so may what waits in them.
            return
        if self._looks < 0 and not self._cluster.me.draining:
            await self._board.take_over()
            self._looks = LOOKS
        else:
            await self._board.take_in_late()
