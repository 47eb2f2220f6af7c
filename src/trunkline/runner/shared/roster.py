"""The agents that several launchers share, in the rows of a PostgreSQL database: a `Roster`.

    roster = await open_roster("postgresql://...")
    fleet = SharedFleet(FleetHome(home), keys, roster)
    ...
    await roster.close()

Every second a launcher says that it is there and what it could run, and looks at what the others do: it takes what
nobody runs, hands over what somebody with fewer agents could run, and follows what people started, changed and stopped
elsewhere. Its leases are renewed beside that, so that nothing it does keeps them waiting.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import uuid
from collections.abc import Callable, Collection, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from trunkline.core.faults import ConfigError, StoreUnavailable
from trunkline.runner.chain.book import Books
from trunkline.runner.holding import Hold
from trunkline.runner.known import KnownAgent
from trunkline.runner.shared import leases, rows, sharing
from trunkline.runner.shared.books import SharedBooks
from trunkline.runner.shared.clock import ticks
from trunkline.runner.shared.leases import Lease, Leases
from trunkline.runner.shared.memory import SharedMemory
from trunkline.runner.shared.schema import FORM
from trunkline.runner.state import RunnerMemory
from trunkline.store.database import Database, DatabaseGone
from trunkline.store.database.opening import open_database

if TYPE_CHECKING:
    from trunkline.store.database.postgres_session import PostgresSession

logger = logging.getLogger(__name__)

#: How often a launcher looks at what others do.
LOOK_SECONDS = 1.0
#: How long a look may take until the database is said not to answer: those that do answer take milliseconds.
ANSWER_SECONDS = 5.0

_POSTGRES = ("postgresql://", "postgres://")


async def open_roster(url: str) -> SharedRoster:
    """Open the database that launchers share, and make its tables where they are missing.

    Raises:
        ConfigError: it cannot be used. The text has no password in it.
    """
    if not url.startswith(_POSTGRES):
        raise ConfigError(
            "Launchers share their agents in a PostgreSQL database, and this is another URL.",
            hint="Write `postgresql://HOST/DATABASE`, or leave `db` out: launchers of one home need none.",
        )
    database = await open_database(url, FORM)
    # Now that its package is known to be there.
    from trunkline.store.database.postgres_session import PostgresSession

    return SharedRoster(database, PostgresSession(url))


class Crew(Protocol):
    """A launcher's agents, as whoever shares them sees them: `shared.fleet`."""

    @property
    def port(self) -> int | None:
        """Where the launcher listens."""

    def named(self) -> list[KnownAgent]:
        """Those that a file names."""

    def able(self) -> Collection[str]:
        """Those that are run here or could be."""

    def running(self) -> Collection[str]:
        """Those that are run here."""

    def idle(self) -> Collection[str]:
        """Those of them that are between two cycles."""

    def seen(self, elsewhere: Mapping[str, str]) -> None:
        """Which agents run in other launchers, and what those are called."""

    async def learn(self, agent_id: str) -> None:
        """Somebody made an agent known in another launcher, or changed or stopped it."""

    async def take(self, agent_id: str) -> None:
        """Run one, if it is still free."""

    async def lay_down(self, agent_id: str) -> None:
        """Stop running one, unless it may run here by now."""

    async def hand_over(self, agent_id: str) -> None:
        """The same for the sake of another launcher: not in the middle of a cycle."""


class SharedHold:
    """A `Hold` by a lease."""

    def __init__(self, lease: Lease, leases: Leases, session: PostgresSession) -> None:
        self._lease = lease
        self._leases = leases
        self._session = session
        self.idle_seconds = lease.idle_seconds
        self.cycles_today = lease.cycles_today

    async def check(self) -> None:
        await self._lease.check()

    def memory(self) -> RunnerMemory:
        return SharedMemory(self._session, self._lease)

    def books(self) -> Books:
        return SharedBooks(self._session, self._lease, self._leases.clock)


class SharedRoster:
    """The `Roster` of one launcher. Belongs to one event loop."""

    def __init__(self, database: Database, session: PostgresSession) -> None:
        self.id = uuid.uuid4().hex
        self._database = database
        self._session = session
        self._leases = Leases(database, self.id, self._lost)
        self._crew: Crew | None = None
        self._versions: dict[str, int] = {}
        """Of the configurations that this launcher knows."""
        self._doing: dict[str, asyncio.Task[None]] = {}
        """What goes on with each agent."""
        self._renewing: asyncio.Task[None] | None = None
        self._is_away = False
        """Whether the last look failed."""
        self._looking_since: float | None = None
        """When the look began that is not over yet."""

    @property
    def is_up(self) -> bool:
        """Whether the database answers. One whose machine hangs does not even refuse."""
        since = self._looking_since
        return not self._is_away and (since is None or ticks() - since < ANSWER_SECONDS)

    @property
    def held(self) -> int:
        """How many leases this launcher has."""
        return len(self._leases)

    # As every roster

    async def all(self) -> list[KnownAgent]:
        try:
            return await self._database.read(rows.all_known)
        except DatabaseGone as error:
            raise _away(error) from None

    async def keep(self, agent: KnownAgent) -> None:
        try:
            self._versions[agent.agent_id] = await self._database.write(lambda tx: rows.keep(tx, agent))
        except DatabaseGone as error:
            raise _away(error) from None

    async def want(self, agent_id: str, wanted: bool) -> None:
        try:
            await self._database.write(lambda tx: rows.want(tx, agent_id, wanted))
        except DatabaseGone as error:
            raise _away(error) from None

    async def hold(self, agent_id: str) -> Hold | None:
        if not agent_id.isascii() or not agent_id.isprintable():
            raise ConfigError("`agentId` has characters that no id of a network has.")
        try:
            lease = await self._leases.take(agent_id)
        except DatabaseGone as error:
            raise _away(error) from None
        if lease is None:
            return None
        if self._renewing is None:
            self._renewing = asyncio.create_task(self._renew(), name="renew leases")
        return SharedHold(lease, self._leases, self._session)

    async def let_go(self, agent_id: str) -> None:
        await self._leases.let_go(agent_id)

    async def close(self) -> None:
        """Let go of everything, so that others can run it at once. May be called again."""
        tasks = [task for task in (*self._doing.values(), self._renewing) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._leases.let_go_of_all()
        await self._database.close()
        await asyncio.to_thread(self._session.close)

    # With others

    async def known(self, agent_id: str) -> KnownAgent | None:
        """What is known of an agent now; from now on this launcher knows it.

        Raises:
            DatabaseGone: the database does not say.
        """
        found = await self._database.read(lambda tx: rows.one_known(tx, agent_id))
        if found is None:
            return None
        self._versions[agent_id] = found[1]
        return found[0]

    async def may_run(self, agent_id: str) -> bool:
        """Whether this launcher has the right to run an agent, and nobody stopped it.

        Raises:
            DatabaseGone: the database does not say.
        """
        return self._leases.holds(agent_id) and await self._database.read(lambda tx: rows.is_to_run(tx, agent_id))

    async def leave(self) -> None:
        """Say that this launcher takes no more agents: then others do not wait for it."""
        try:
            async with asyncio.timeout(leases.PARTING_SECONDS):
                await self._database.write(lambda tx: rows.leave(tx, self.id))
        except (DatabaseGone, TimeoutError) as error:
            logger.debug("the launcher could not take its leave: %s", error)

    async def share(self, crew: Crew) -> None:
        """Share a launcher's agents with other launchers, until cancelled."""
        self._crew = crew
        while True:
            self._looking_since = ticks()
            try:
                await self._look(crew)
                self._is_away = False
            except (DatabaseGone, StoreUnavailable) as error:
                if not self._is_away:
                    logger.warning("The launchers' database cannot be reached, and agents stop soon: %s", error)
                self._is_away = True
            except Exception:  # whatever it is, agents are not left alone for it
                logger.exception("the launcher could not look at what others do; it will try again")
            self._looking_since = None
            await asyncio.sleep(LOOK_SECONDS)

    async def _look(self, crew: Crew) -> None:
        for known in crew.named():
            if known.agent_id not in self._versions:
                await self.keep(known)
        name, able = f"{socket.gethostname()}:{crew.port or os.getpid()}", sorted(crew.able())
        # Before the look: what is begun meanwhile is not in it.
        running = set(crew.running())
        seen = await self._database.write(lambda tx: rows.look(tx, self.id, name, able))
        crew.seen(_elsewhere(self.id, seen))
        for agent in seen.agents:
            id = agent.agent_id
            if agent.version != self._versions.get(id):
                self._do(id, partial(crew.learn, id))
            elif id in running and (agent.state == "stopped" or agent.holder != self.id):
                self._do(id, partial(crew.lay_down, id))
        for id in sharing.to_take(self.id, seen):
            self._do(id, partial(crew.take, id))
        given = sharing.to_give(self.id, seen, crew.idle())
        if given is not None:
            logger.info("`%s` is handed over to another launcher.", given)
            self._do(given, partial(crew.hand_over, given))

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(leases.RENEW_SECONDS)
            try:
                await self._leases.renew()
            except DatabaseGone as error:
                logger.warning("Leases could not be renewed: %s", error)
            except Exception:  # the next time may be better
                logger.exception("leases could not be renewed; it will be tried again")

    def _lost(self, agent_id: str) -> None:
        """A lease is over although nobody let go of it."""
        logger.warning("Another launcher may run `%s` now: it is stopped here.", agent_id)
        if self._crew is not None:
            self._do(agent_id, partial(self._crew.lay_down, agent_id), wait=True)

    def _do(self, agent_id: str, work: Callable[[], Coroutine[Any, Any, None]], *, wait: bool = False) -> None:
        """Do something with an agent beside all else, one thing at a time: what cannot begin now is seen again, unless
        it is to wait."""
        before = self._doing.get(agent_id)
        if before is not None and before.done():
            before = None
        if before is None or wait:
            self._doing[agent_id] = asyncio.create_task(_told(agent_id, work, before), name=f"share {agent_id}")


async def _told(
    agent_id: str, work: Callable[[], Coroutine[Any, Any, None]], before: asyncio.Task[None] | None
) -> None:
    """Do it, after what was begun before, and say what goes wrong."""
    try:
        if before is not None:
            await asyncio.wait({before})
        await work()
    except DatabaseGone as error:
        logger.warning("`%s` waits for the launchers' database: %s", agent_id, error)
    except Exception:  # what is wrong with one agent must not stop the others
        logger.exception("`%s` could not be started or stopped; it will be tried again", agent_id)


def _elsewhere(me: str, seen: sharing.LaunchersView) -> Mapping[str, str]:
    return {
        agent.agent_id: seen.names.get(agent.holder, "a launcher that does not answer")
        for agent in seen.agents
        if agent.holder is not None and agent.holder != me
    }


def _away(error: DatabaseGone) -> StoreUnavailable:
    return StoreUnavailable(f"The launchers' database cannot be used now: {error}.")
