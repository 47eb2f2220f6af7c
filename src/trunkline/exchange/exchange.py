"""The exchange: agents by name, sessions that outlive connections, approvals that reach a person, one budget.

    async with Exchange.opened(settings) as exchange:
        live = await exchange.switchboard.open("helper", by="ana")
        turn = await exchange.switchboard.submit(live, UserMessage("Hello"))

It serves no clients itself: `exchange.api` and `exchange.lines` do.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from trunkline.agents.with_model import made
from trunkline.base import exchange_home
from trunkline.base.posting_kept import keeping_posters
from trunkline.base.redact import Redactor
from trunkline.core.agent import Agent
from trunkline.exchange.agent_log import hearing
from trunkline.exchange.approvals import Approval
from trunkline.exchange.browsers import Browsers
from trunkline.exchange.budgets import Budgets
from trunkline.exchange.directory import Directory, Make
from trunkline.exchange.graph_tries import GraphTries
from trunkline.exchange.live_session import Told
from trunkline.exchange.people import People
from trunkline.exchange.pulling import ModelPulls
from trunkline.exchange.schema import FORM
from trunkline.exchange.service import Service
from trunkline.exchange.settings import ClusterSettings, ExchangeSettings
from trunkline.exchange.switchboard import Switchboard
from trunkline.models import prices
from trunkline.store.database import Database
from trunkline.store.database.opening import open_database
from trunkline.store.files import FileStore

if TYPE_CHECKING:
    from trunkline.exchange.cluster.cluster import Cluster
    from trunkline.exchange.cluster.places import SessionPlaces


class Exchange:
    """The exchange as a whole. Created by `opened`."""

    def __init__(
        self,
        settings: ExchangeSettings,
        database: Database,
        make: Make,
        clock: Callable[[], int],
        environ: Mapping[str, str],
        cluster: Cluster | None = None,
    ) -> None:
        self.settings = settings
        self.environ = environ
        """With the secrets of wires and people, unlike the one that agents have."""
        self.redactor = Redactor.from_environ(environ)
        self.redactor.learn(self._secrets)
        self._make = make
        self.clock = clock
        self.address = ""
        """Where it is reached over HTTP, once it is."""
        self.beside: tuple[Service, ...] = ()
        """What runs beside it in the same process, for people who look for that here."""
        self.reached: dict[str, str] = {}
        """Where the wires that are served are reached, by their names."""
        self.told: list[Told] = []
        """Each is called for every approval that a person must decide on."""
        self.people = People(settings.people.values())
        self.browsers = Browsers(database, clock, lambda: self.people)
        models_in = os.path.join(settings.home, "models")
        self.directory = Directory(settings.agents, self._made, clock, self.redactor.text, models_in=models_in)
        self.budgets = Budgets(database, clock, prices.cost)
        self.pulls = ModelPulls(clock, self.redactor.text)
        self.tries = GraphTries()
        self.cluster = cluster
        """The other nodes, if there are any."""
        sessions = exchange_home.sessions_dir(settings.home)
        places = None if cluster is None else _places(cluster, self.directory, sessions)
        self.switchboard = Switchboard(
            self.directory,
            database,
            sessions,
            self.budgets,
            self.redactor,
            clock=clock,
            evict_seconds=settings.evict_seconds,
            told=self._tell,
            places=places,
        )

    @classmethod
    @asynccontextmanager
    async def opened(
        cls,
        settings: ExchangeSettings,
        *,
        make: Make | None = None,
        clock: Callable[[], int] | None = None,
        environ: Mapping[str, str] = os.environ,
        wait: bool = True,
    ) -> AsyncIterator[Exchange]:
        """Open what is kept in the home, and close it at the end.

        Args:
            make: how agents are created; by default from the registry.
            clock: gives milliseconds since 1970.
            environ: where the secrets of wires are.
            wait: until all sessions in which something waits are awake; else they are woken meanwhile.

        Raises:
            ConfigError: the home cannot be used, or another exchange has it.
        """
        async with AsyncExitStack() as stack:
            database = await open_database(_rows_of(settings), FORM)
            stack.push_async_callback(database.close)
            cluster = None
            if settings.cluster is not None:
                at = (clock or _now)()
                cluster = await stack.enter_async_context(_cluster(settings.cluster, settings, at))
            exchange = cls(settings, database, make or by_registry, clock or _now, environ, cluster)
            await exchange.budgets.open({name: agent.budget for name, agent in settings.agents.items()})
            # Agents are opened and closed all the time, and ask the same few servers.
            await stack.enter_async_context(keeping_posters())
            stack.push_async_callback(exchange.pulls.close)
            stack.push_async_callback(exchange.directory.close)
            stack.callback(exchange.tries.close)
            stack.enter_context(hearing(exchange.directory.logs, exchange._agent_of))
            stack.push_async_callback(exchange.switchboard.close)
            if cluster is not None:
                await stack.enter_async_context(_joined(exchange, cluster))
            await exchange.switchboard.start(wait=wait)
            yield exchange

    async def take_up(self, settings: ExchangeSettings) -> None:
        """Apply new settings. Conversations in progress keep those that they started with."""
        await self.budgets.open({name: agent.budget for name, agent in settings.agents.items()})
        self.directory.take_up(settings.agents)
        self.switchboard.evict_seconds = settings.evict_seconds
        self.people = People(settings.people.values())
        self.settings = settings
        self.redactor.learn(self._secrets)

    @property
    def _secrets(self) -> tuple[str, ...]:
        return self.settings.secrets(self.environ)

    async def _made(self, name: str, options: dict[str, Any]) -> Agent:
        agent = await self._make(name, options)
        own: Redactor | None = getattr(agent, "redactor", None)
        if own is not None:
            # It knows the secrets of its own environment, where ours are no more.
            own.learn(self._secrets)
        return agent

    def _agent_of(self, session_id: str) -> str | None:
        live = self.switchboard.live(session_id)
        return None if live is None else live.agent

    def _tell(self, approval: Approval) -> None:
        for told in self.told:
            told(approval)


def _rows_of(settings: ExchangeSettings) -> str:
    return settings.cluster.postgres if settings.cluster else f"sqlite:///{database_path(settings.home)}"


def _cluster(own: ClusterSettings, settings: ExchangeSettings, at: int) -> AbstractAsyncContextManager[Cluster]:
    # Imported only where there is one: the client of NATS takes long.
    from trunkline.exchange.cluster.cluster import Cluster

    host, port = settings.listen
    return Cluster.opened(own, settings.home, address=f"http://{host}:{port}", at=at)


def _places(cluster: Cluster, directory: Directory, sessions: str) -> SessionPlaces:
    from trunkline.exchange.cluster.places import SessionPlaces

    return SessionPlaces(cluster, directory, FileStore(sessions))


def _joined(exchange: Exchange, cluster: Cluster) -> AbstractAsyncContextManager[None]:
    from trunkline.exchange.cluster.joining import joined

    return joined(exchange.switchboard, exchange.budgets, cluster)


async def by_registry(name: str, options: dict[str, Any]) -> Agent:
    """The agent with that name in the registry; one that needs a model gets the one found here."""
    from trunkline.agents import registry

    agent, _ = await made(lambda found: registry.make(name, found), options, os.environ)
    return agent


def _now() -> int:
    return int(time.time() * 1000)


def database_path(home: str) -> str:
    """Where the rows are."""
    return os.path.join(home, "exchange.db")
