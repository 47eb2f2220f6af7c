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
from contextlib import asynccontextmanager
from typing import Any

from trunkline.agents.with_model import made
from trunkline.base import exchange_home
from trunkline.base.posting_kept import keeping_posters
from trunkline.base.redact import Redactor
from trunkline.core.agent import Agent
from trunkline.exchange.approvals import Approval
from trunkline.exchange.budgets import Budgets
from trunkline.exchange.directory import Directory, Make
from trunkline.exchange.live_session import Told
from trunkline.exchange.people import People
from trunkline.exchange.schema import FORM
from trunkline.exchange.settings import ExchangeSettings
from trunkline.exchange.switchboard import Switchboard
from trunkline.models import prices
from trunkline.store.database import Database
from trunkline.store.database.opening import open_database


class Exchange:
    """The exchange as a whole. Created by `opened`."""

    def __init__(
        self,
        settings: ExchangeSettings,
        database: Database,
        make: Make,
        clock: Callable[[], int],
        environ: Mapping[str, str],
    ) -> None:
        self.settings = settings
        self.environ = environ
        """With the secrets of wires and people, unlike the one that agents have."""
        self.redactor = Redactor.from_environ(environ)
        self.redactor.learn(self._secrets)
        self._make = make
        self.clock = clock
        self.told: list[Told] = []
        """Each is called for every approval that a person must decide on."""
        self.people = People(settings.people.values())
        models_in = os.path.join(settings.home, "models")
        self.directory = Directory(settings.agents, self._made, clock, self.redactor.text, models_in=models_in)
        self.budgets = Budgets(database, clock, prices.cost)
        self.switchboard = Switchboard(
            self.directory,
            database,
            exchange_home.sessions_dir(settings.home),
            self.budgets,
            self.redactor,
            clock=clock,
            evict_seconds=settings.evict_seconds,
            told=self._tell,
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
        database = await open_database(f"sqlite:///{database_path(settings.home)}", FORM)
        try:
            exchange = cls(settings, database, make or by_registry, clock or _now, environ)
            await exchange.budgets.open({name: agent.budget for name, agent in settings.agents.items()})
            # Agents are opened and closed all the time, and ask the same few servers.
            async with keeping_posters():
                try:
                    await exchange.switchboard.start(wait=wait)
                    yield exchange
                finally:
                    await exchange.switchboard.close()
        finally:
            await database.close()

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
        """What must not be shown, besides what is seen to be a secret by its variable's name."""
        settings = self.settings
        return (*settings.kept, *(self.environ.get(name, "") for name in settings.variables))

    async def _made(self, name: str, options: dict[str, Any]) -> Agent:
        agent = await self._make(name, options)
        own: Redactor | None = getattr(agent, "redactor", None)
        if own is not None:
            # It knows the secrets of its own environment, where ours are no more.
            own.learn(self._secrets)
        return agent

    def _tell(self, approval: Approval) -> None:
        for told in self.told:
            told(approval)


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
