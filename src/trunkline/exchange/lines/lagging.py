"""An attached host that reads too slowly: the others in its session wait for it only so long.

Then events are left out for it, until it has read what it was told. It hears how many are missing, and where the
session is by then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from trunkline.core.events import Envelope
from trunkline.core.session import Session
from trunkline.exchange.lines import connection
from trunkline.exchange.lines.connection import LocalConnection


class Follower(Protocol):
    """Tells a host what happens in a session."""

    def show(self, envelopes: Sequence[Envelope]) -> None:
        """Some events."""

    def missed(self, count: int) -> None:
        """So many events were left out: say so, and where the session is now."""


class LaggingSink:
    """Between a session and a follower. The session's sink until `leave`."""

    def __init__(self, session: Session, to: LocalConnection, follower: Follower) -> None:
        self._session = session
        self._connection = to
        self._follower = follower
        self._patience = connection.PATIENCE_SECONDS
        self._missed = 0
        self._catching_up: asyncio.Task[None] | None = None
        session.attach(self)

    @property
    def congested(self) -> bool:
        """Whether the agent should wait."""
        return self._catching_up is None and self._connection.congested

    async def drain(self) -> None:
        """Wait for the host, but only so long."""
        if await self._connection.has_read(self._patience) or self._catching_up is not None:
            return
        # Whoever is slow is slow again, and the others have waited for it once.
        self._patience /= 2
        self._catching_up = asyncio.get_running_loop().create_task(self._catch_up(), name="a host that lags behind")

    def show(self, envelopes: Sequence[Envelope]) -> None:
        """Some events of the session."""
        if self._catching_up is None:
            self._follower.show(envelopes)
        else:
            self._missed += len(envelopes)

    async def leave(self) -> None:
        """Be shown no more of the session, which goes on."""
        self._session.detach(self)
        if self._catching_up is not None:
            self._catching_up.cancel()
            await asyncio.wait({self._catching_up})

    async def _catch_up(self) -> None:
        await self._connection.has_read(None)
        self._catching_up = None
        missed, self._missed = self._missed, 0
        if missed:
            self._follower.missed(missed)
