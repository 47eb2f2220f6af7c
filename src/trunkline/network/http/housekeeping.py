"""What is tidied up now and then, in passing: expired nonces, what agents said an hour ago, communities whose time has
come.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from trunkline.network import cleanup, nonces, repeating, webhooks
from trunkline.network.network import Network
from trunkline.store.database import Transaction

logger = logging.getLogger(__name__)

#: At most so often.
INTERVAL_SECONDS = 60.0
#: How long a request waits for it. What takes longer goes on beside the requests.
WAIT_SECONDS = 0.5
#: Rounds of one kind in one go: what a busy network makes in a minute, and no more than a moment's work.
_ROUNDS = 20


class Housekeeping:
    """Does it before a request, if the last time is long enough ago. Never makes the request fail."""

    def __init__(self, network: Network, clock: Callable[[], float] = time.monotonic) -> None:
        self._network = network
        self._clock = clock
        self._next = 0.0
        self._task: asyncio.Task[None] | None = None

    async def if_due(self) -> None:
        """Tidy up, if it is time and nobody is at it."""
        now = self._clock()
        if now < self._next or self._task is not None:
            return
        self._next = now + INTERVAL_SECONDS
        self._task = asyncio.create_task(self._tidy(), name="housekeeping")
        await asyncio.wait({self._task}, timeout=WAIT_SECONDS)

    async def close(self) -> None:
        """Leave the rest for another time."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _tidy(self) -> None:
        moment = self._network.now()
        try:
            await self._rounds(lambda tx: nonces.purge(tx, moment), nonces.PURGED_AT_ONCE)
            await self._rounds(lambda tx: repeating.purge(tx, moment), repeating.REMOVED_AT_ONCE)
            await self._rounds(lambda tx: webhooks.purge(tx, moment), webhooks.REMOVED_AT_ONCE)
            await cleanup.tidy(self._network)
        except Exception:
            logger.exception("tidying up failed; it will be tried again in a minute")
        finally:
            self._task = None

    async def _rounds(self, purge: Callable[[Transaction], int], at_once: int) -> None:
        for _ in range(_ROUNDS):
            if await self._network.database.write(purge) < at_once:
                break
