"""Denies approvals that nobody has decided in time, if the exchange's file says so. Otherwise they wait."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable

from trunkline.core.agent import Deny
from trunkline.core.faults import Fault
from trunkline.exchange.approvals import AlreadyDecided, Approval
from trunkline.exchange.switchboard import Switchboard
from trunkline.store.database import DatabaseGone

logger = logging.getLogger(__name__)

#: How often to look for expired ones: short compared with any sensible limit.
LOOK_SECONDS = 1.0
#: The name under which they are decided.
BY = "the exchange"


class Expiry:
    """Denies what has waited too long. `after` returns how long that is, in seconds; None means never."""

    def __init__(self, switchboard: Switchboard, clock: Callable[[], int], after: Callable[[], float | None]) -> None:
        self._switchboard = switchboard
        self._clock = clock
        self._after = after

    async def run(self, ending: asyncio.Event) -> None:
        """Check periodically until `ending` is set."""
        while not ending.is_set():
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await ending.wait()
            except TimeoutError:
                try:
                    await self.look()
                except DatabaseGone as error:
                    logger.warning("approvals that have expired cannot be denied now: %s", error)

    async def look(self) -> int:
        """Deny what has expired; returns how many."""
        seconds = self._after()
        if seconds is None:
            return 0
        late = await self._switchboard.approvals.overdue(self._clock() - math.ceil(seconds * 1000))
        for approval in late:
            await self._deny(approval, f"Nobody answered within {seconds:g} seconds.")
        return len(late)

    async def _deny(self, approval: Approval, reason: str) -> None:
        try:
            live = await self._switchboard.find(approval.session)
            await live.decide(approval, Deny(reason), BY)
        except AlreadyDecided:
            # Somebody answered just in time.
            return
        except Fault as fault:
            logger.warning("approval %s cannot be denied now: %s", approval.id, fault)
