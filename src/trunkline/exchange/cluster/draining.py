"""A planned move: a node takes no new sessions, and lets go of each that it has when its turn has ended."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from trunkline.core.faults import Fault
from trunkline.core.turns import State
from trunkline.exchange.cluster.cluster import Cluster
from trunkline.exchange.live_session import LiveSession
from trunkline.exchange.switchboard import Switchboard

logger = logging.getLogger(__name__)

_AT_REST = (State.IDLE, State.CLOSED)


class Draining:
    """One node's."""

    def __init__(self, board: Switchboard, cluster: Cluster) -> None:
        self._board = board
        self._cluster = cluster
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> int:
        """Let go of everything, and go on with that; gives how many sessions there are to let go of. May be called
        again."""
        # Before the answer: whoever waits for the end of it asks any node how many there are.
        left = sum(not live.is_followed for live in self._board.at_work)
        await self._cluster.nodes.update(draining=True, sessions=left)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._drain(), name="drain the node")
        return left

    async def close(self) -> None:
        """Let go of no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _drain(self) -> None:
        while self._cluster.owned:
            await asyncio.gather(*(self._moved(live) for live in self._board.at_work if not live.is_followed))
            # Those that are asleep, as far as this run has had them. One that was woken meanwhile is let go of next.
            for session in tuple(self._cluster.owned):
                if (live := self._board.live(session)) is None or live.is_followed:
                    await self._cluster.release(session)
        await self._cluster.nodes.update(sessions=0)
        logger.warning("this node is drained")

    async def _moved(self, live: LiveSession) -> None:
        """Wait for the end of its turn, and let go of it. One that waits for a person goes at once if its agent can go
        on elsewhere."""
        session = live.session
        while session.status not in _AT_REST and not (session.waiting and session.capabilities.continues):
            # Once more, if the next turn began while the end of the last one was being kept.
            await session.at_rest()
        with suppress(Fault):
            await self._board.move(live)
