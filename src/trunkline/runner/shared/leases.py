"""Leases: of all launchers that share an agent, one has the right to run it, for a few seconds, and renews it.

- A lease is a row. It is taken when nobody has it or its time has run out, by the database's clock; each time its
  `fence` counts up. Whoever had it before is known by a lower one, and nothing is written under that any more.
- A launcher takes its lease for over a little before the database does, by what has passed on its own machine since it
  asked. So it stops in time, also if the database cannot be reached, or if its process was stopped for a while.
- Right before anything is done that others can see, the database is asked whether the lease is still ours (`check`). A
  process that is stopped between its answer and the sending of a request can still send that request when it goes on:
  what is being sent was written down before under this lease, so whoever runs the agent then looks for it, and does not
  do it again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from trunkline.core.faults import StoreUnavailable
from trunkline.runner.holding import LeaseLost
from trunkline.runner.shared.clock import DatabaseClock, ticks
from trunkline.runner.shared.schema import NOW
from trunkline.store.database import Database, DatabaseGone, Row, Transaction

logger = logging.getLogger(__name__)

#: How long a launcher that died or was cut off keeps its agents from running elsewhere.
LEASE_SECONDS = 10.0
#: How often leases are renewed: two renewals may fail.
RENEW_SECONDS = 3.0
#: So long before the end nothing is begun any more: what is sent then has time to arrive.
MARGIN_SECONDS = 1.0

#: How long a launcher that ends tries to tell the others. They find out by themselves, too.
PARTING_SECONDS = 3.0

_DAY_MS = 24 * 60 * 60 * 1000

_TAKE = (
    "INSERT INTO runner_lease AS known (agent_id, fence, holder, expires_at) "  # noqa: S608 - fixed texts
    f"VALUES (?, 1, ?, {NOW} + ?) ON CONFLICT (agent_id) DO UPDATE "
    f"SET fence = known.fence + 1, holder = excluded.holder, expires_at = {NOW} + ? "
    f"WHERE known.holder IS NULL OR known.expires_at <= {NOW} "
    f"RETURNING fence, ran_at, cycles, day = {NOW} / {_DAY_MS} AS today, {NOW} AS now"
)
_RENEW = (
    f"UPDATE runner_lease SET expires_at = {NOW} + ? "  # noqa: S608 - the same
    f"WHERE holder = ? AND agent_id = ANY(?) AND expires_at > {NOW} RETURNING agent_id, fence, {NOW} AS now"
)
_RELEASE = (
    f"UPDATE runner_lease SET holder = NULL, expires_at = {NOW} "  # noqa: S608 - the same
    "WHERE agent_id = ? AND fence = ? AND holder = ?"
)
_OURS = f"agent_id = ? AND fence = ? AND holder = ? AND expires_at > {NOW}"
_IS_OURS = f"SELECT 1 AS found FROM runner_lease WHERE {_OURS}"  # noqa: S608 - the same
_BEGIN_CYCLE = (
    f"UPDATE runner_lease SET ran_at = {NOW}, day = {NOW} / {_DAY_MS}, "  # noqa: S608 - the same
    f"cycles = CASE WHEN day = {NOW} / {_DAY_MS} THEN cycles + 1 ELSE 1 END WHERE {_OURS}"
)


class Lease:
    """The right to run one agent. Belongs to the event loop; `enter` is for threads."""

    def __init__(self, leases: Leases, agent_id: str, taken: Row, asked: float) -> None:
        self._leases = leases
        self.agent_id = agent_id
        self.fence: int = taken["fence"]
        self.idle_seconds: float | None = (taken["now"] - taken["ran_at"]) / 1000 if taken["ran_at"] else None
        """How long ago the agent's last cycle began, wherever; None if there was none."""
        self.cycles_today: int = taken["cycles"] if taken["today"] else 0
        self._until = asked + LEASE_SECONDS
        self._over = False
        self._timer = asyncio.get_running_loop().call_later(self.seconds_left, self._look)

    @property
    def seconds_left(self) -> float:
        """How long something may still be begun."""
        return 0.0 if self._over else max(0.0, self._until - MARGIN_SECONDS - ticks())

    def check_here(self) -> None:
        """See that it is not over, as far as that can be known here.

        Raises:
            LeaseLost: it is over.
        """
        if not self.seconds_left:
            self.end()
            raise LeaseLost

    async def check(self) -> None:
        """See that the database says so, too; and that the answer did not come too late to count.

        Raises:
            LeaseLost: it is over.
            StoreUnavailable: the database does not say.
        """
        self.check_here()
        await self._asked(lambda database: database.read(lambda tx: tx.one(_IS_OURS, self._key) is not None))
        self.check_here()

    async def begin_cycle(self) -> None:
        """A cycle begins: it is counted, wherever the next one will run. Raises as `check`."""
        self.check_here()
        await self._asked(lambda database: database.write(lambda tx: tx.execute(_BEGIN_CYCLE, self._key) == 1))
        self.check_here()

    def enter(self, tx: Transaction) -> None:
        """See that it is ours, in a transaction that is to write under it: until it is over, nobody else takes it.

        Raises:
            LeaseLost: it is over.
        """
        if self._over or tx.one(f"{_IS_OURS} FOR SHARE", self._key) is None:
            raise LeaseLost

    def renewed(self, asked: float) -> None:
        """The database prolonged it, after it was asked at that tick."""
        self._until = asked + LEASE_SECONDS

    def end(self) -> None:
        """It is over. May be called again."""
        if not self._over:
            self._over = True
            self._timer.cancel()
            self._leases.ended(self)

    async def _asked(self, ask: Callable[[Database], Any]) -> None:
        try:
            async with asyncio.timeout(self.seconds_left):
                ours = await ask(self._leases.database)
        except (DatabaseGone, TimeoutError) as error:
            raise StoreUnavailable(
                f"Whether this launcher may still run the agent cannot be found out: {str(error) or 'no answer'}."
            ) from None
        if not ours:
            self.end()
            raise LeaseLost

    def _look(self) -> None:
        """At the end of its time, unless it was prolonged."""
        if left := self.seconds_left:
            self._timer = asyncio.get_running_loop().call_later(left, self._look)
        else:
            self.end()

    @property
    def _key(self) -> tuple[str, int, str]:
        return self.agent_id, self.fence, self._leases.holder


class Leases:
    """Those of one launcher. Belongs to one event loop.

    Args:
        holder: the launcher's id, which no other one has or had.
        lost: told of each that is over, although nobody let go of it.
    """

    def __init__(self, database: Database, holder: str, lost: Callable[[str], None]) -> None:
        self.database = database
        self.holder = holder
        self.clock = DatabaseClock()
        self._lost = lost
        self._held: dict[str, Lease] = {}

    def __len__(self) -> int:
        """How many it has."""
        return len(self._held)

    async def take(self, agent_id: str) -> Lease | None:
        """Take one, if nobody has it.

        Raises:
            DatabaseGone: the database does not say.
        """
        if agent_id in self._held:
            return None
        asked, duration = ticks(), int(LEASE_SECONDS * 1000)
        row = await self.database.write(lambda tx: tx.one(_TAKE, (agent_id, self.holder, duration, duration)))
        if row is None:
            return None
        self.clock.heard(row["now"], asked)
        lease = self._held[agent_id] = Lease(self, agent_id, row, asked)
        return lease

    def holds(self, agent_id: str) -> bool:
        """Whether it is ours, as far as that can be known here."""
        lease = self._held.get(agent_id)
        return lease is not None and lease.seconds_left > 0

    async def let_go(self, agent_id: str) -> None:
        """Let others take one at once. If the database cannot be told, they take it when its time is over."""
        lease = self._held.pop(agent_id, None)
        if lease is None:
            return
        # First here: whatever does not end in time can do nothing more.
        lease.end()
        key = (agent_id, lease.fence, self.holder)
        try:
            async with asyncio.timeout(PARTING_SECONDS):
                await self.database.write(lambda tx: tx.execute(_RELEASE, key))
        except (DatabaseGone, TimeoutError) as error:
            problem = str(error) or "no answer"
            logger.warning("Others can run `%s` in %g seconds at most: %s", agent_id, LEASE_SECONDS, problem)

    async def let_go_of_all(self) -> None:
        """The same for those that are left."""
        await asyncio.gather(*map(self.let_go, list(self._held)))

    async def renew(self) -> None:
        """Prolong all. What the database does not prolong is lost.

        Raises:
            DatabaseGone: the database does not answer.
        """
        held = list(self._held.values())
        if not held:
            return
        asked, duration = ticks(), int(LEASE_SECONDS * 1000)
        # Only those: one whose taking was never confirmed must not be kept from everybody.
        agents = [lease.agent_id for lease in held]
        rows = await self.database.write(lambda tx: tx.all(_RENEW, (duration, self.holder, agents)))
        found = {(row["agent_id"], row["fence"]) for row in rows}
        for lease in held:
            if (lease.agent_id, lease.fence) in found:
                lease.renewed(asked)
            else:
                lease.end()
        if rows:
            self.clock.heard(rows[0]["now"], asked)

    def ended(self, lease: Lease) -> None:
        """A lease is over."""
        if self._held.get(lease.agent_id) is lease:
            del self._held[lease.agent_id]
            self._lost(lease.agent_id)
