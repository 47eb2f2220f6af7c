"""Which node serves a wire that one node serves for all: a chat account has one inbox, and two who empty it get in each
other's way. The others stand by."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from trunkline.core.faults import StoreUnavailable
from trunkline.exchange.cluster.cluster import Cluster
from trunkline.store.jetstream.ownership import SessionOwner

logger = logging.getLogger(__name__)

#: How often those who stand by look.
LOOK_SECONDS = 1.0


class WirePlace:
    """One node's part in it."""

    def __init__(self, cluster: Cluster, wire: str) -> None:
        self._cluster = cluster
        self._wire = wire
        self._mine: SessionOwner | None = None

    @property
    def is_held(self) -> bool:
        """Whether this node has the right to serve it."""
        cluster = self._cluster
        return self._mine is not None and cluster.nodes.is_held and cluster.wires.get(self._wire) is self._mine

    @property
    def is_ours(self) -> bool:
        """Whether it is also to do so: it is not being drained while others are there."""
        others = self._cluster.nodes.others.values()
        return self.is_held and not (self._cluster.me.draining and any(not node.draining for node in others))

    async def taken(self, stop: asyncio.Event) -> SessionOwner | None:
        """Wait until it is this node's to serve; None: `stop` was set."""
        while not stop.is_set():
            try:
                self._mine = await self._cluster.serve(self._wire)
            except StoreUnavailable as error:
                logger.info("it is not known who serves %s: %s", self._wire, error)
            if self.is_held and not self.is_ours:
                # It was let go of, and nobody heard of that.
                await self.let_go()
            if self.is_ours:
                logger.warning("this node serves %s now", self._wire)
                return self._mine
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await stop.wait()
        return None

    async def let_go(self) -> None:
        """Serve it no more."""
        self._mine = None
        await self._cluster.stop_serving(self._wire)
