"""Several exchanges in one process that are one cluster, on real NATS servers and a real PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from tests.support import postgres
from tests.support.exchange_world import CommandedAgent
from tests.support.nats import NatsServer
from trunkline.core.agent import Agent
from trunkline.core.events import Envelope, TextDelta, TurnEnded
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.live_session import LiveSession
from trunkline.exchange.settings import AgentSettings, ClusterSettings, ExchangeSettings


class ClusterWorld:
    """What all nodes share: the servers, the database, and the agents, which outlive the nodes."""

    def __init__(self, servers: list[NatsServer], database: str, root: Path, name: str) -> None:
        self.servers = servers
        self._database = database
        self._root = root
        self._name = name
        self.agents = {"helper": CommandedAgent(), "simple": CommandedAgent(continues=False)}
        self.pinned: dict[str, tuple[str, ...]] = {}

    def settings(self, node: str) -> ExchangeSettings:
        """A node's own."""
        home = self._root / node
        home.mkdir(parents=True, exist_ok=True)
        cluster = ClusterSettings(tuple(each.url for each in self.servers), self._database, node, self._name)
        agents = {name: AgentSettings(name, name, str(self._root), nodes=self.pinned.get(name)) for name in self.agents}
        return ExchangeSettings("", str(home), agents=agents, cluster=cluster, metrics_without_token=True)

    async def _made(self, name: str, options: dict[str, Any]) -> Agent:
        return self.agents[name]

    @asynccontextmanager
    async def node(self, name: str) -> AsyncIterator[Exchange]:
        """One node, for the duration of the block."""
        async with Exchange.opened(self.settings(name), make=self._made) as exchange:
            yield exchange

    @asynccontextmanager
    async def nodes(self, *names: str) -> AsyncIterator[list[Exchange]]:
        """Several."""
        async with AsyncExitStack() as stack:
            found = [await stack.enter_async_context(self.node(name)) for name in names]
            for exchange in found:
                assert exchange.cluster is not None
                await exchange.cluster.nodes.look()
            yield found


@contextmanager
def world(root: Path, servers: list[NatsServer], server: postgres.Postgres) -> Iterator[ClusterWorld]:
    """A cluster with nothing in it."""
    with server.database() as url:
        yield ClusterWorld(servers, url, root, f"t{abs(hash(str(root)))}")


async def said(live: LiveSession, since: int = 0, ends: int = 1) -> list[Envelope]:
    """What happens in a session, until so many turns have ended."""
    found: list[Envelope] = []
    async with asyncio.timeout(60):
        async for item in live.session.subscribe(since):
            assert isinstance(item, Envelope), item
            found.append(item)
            if sum(isinstance(each.event, TurnEnded) for each in found) == ends:
                return found
    raise AssertionError("it was closed before")


def words(envelopes: list[Envelope]) -> str:
    """What was said."""
    return "".join(each.event.text for each in envelopes if isinstance(each.event, TextDelta))


def outcomes(envelopes: list[Envelope]) -> list[str]:
    """How turns ended."""
    return [each.event.outcome for each in envelopes if isinstance(each.event, TurnEnded)]
