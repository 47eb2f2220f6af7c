"""Clients on a cluster that go on whatever happens to it.

Each session has a talker, which says one message after the other, on one wire after the other, and waits for each end;
and a watcher, which goes on after the last number that it has seen, on any node. Some talkers are games: they have
sessions of their own. Approvers answer what is asked.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import uuid4

import httpx

from tests.chaos.cluster import watching
from tests.chaos.cluster.clients.acp import AcpClient
from tests.chaos.cluster.clients.agentproc import AgentProcClient
from tests.chaos.cluster.clients.chat import ChatClient
from tests.chaos.cluster.clients.http import HttpClient
from tests.chaos.cluster.clients.jsonstream import JsonStreamClient
from tests.chaos.cluster.clients.openai import OpenAIClient
from tests.chaos.cluster.clients.tryll import TryllClient
from tests.chaos.cluster.clients.wire import TRY_SECONDS, WireClient
from tests.chaos.cluster.hearing import Hearing, word
from tests.chaos.cluster.history import END_SECONDS, SEEING_SECONDS, ClientView, History
from tests.support.cluster_process import TOKEN, NodeProcess
from tests.support.nats import NatsServer

HEADERS = {"Authorization": f"Bearer {TOKEN}"}

#: The wires of the sessions that have a name, in the order in which a talker uses them.
SHARED_WIRES = ("http", "jsonstream", "chat", "http", "agentproc", "openai", "acp")
GAME_WIRE = "tryll"
WIRES = (*dict.fromkeys(SHARED_WIRES), GAME_WIRE)
#: Each session of that number has a game.
GAMES = 6
#: What is disturbed when something is done to a server, in place of a node's name.
NATS = "nats"

#: A client that hears nothing for so long, when nothing is done to the cluster, or its turn is over and nothing is done
#: to its node, never will: machines are busy, but not for so long.
HANGING_SECONDS = 3 * END_SECONDS
#: How often is looked whether a watcher has seen an end, and whether a client hangs: there are hundreds.
_LOOK_SECONDS = 0.05
_HANGING_LOOK_SECONDS = 0.25


@dataclass
class Load:
    """The clients, and what they were told."""

    nodes: Mapping[str, NodeProcess]
    servers: Sequence[NatsServer]
    games: Mapping[str, int]
    """Where the nodes serve games."""
    chance: random.Random
    think: float
    """Seconds, on average, between what a talker hears and what it says next."""
    history: History = field(default_factory=History)
    fault_at: float = 0.0
    """When something was last done to the cluster, or undone."""
    fault: str = ""
    disturbed: dict[str, float] = field(default_factory=dict)
    """When something was last done to each node, and to the servers; infinity while it goes on."""
    over: asyncio.Event = field(default_factory=asyncio.Event)
    calm: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when nothing more is done to the cluster."""
    troubles: list[str] = field(default_factory=list)

    def node(self) -> NodeProcess:
        """Any node."""
        return self.chance.choice(list(self.nodes.values()))

    async def run(self, sessions: int, seconds: float) -> None:
        """Have so many sessions talk for so long, and until nothing more is done, and let each come to its end."""
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        async with httpx.AsyncClient(headers=HEADERS, timeout=TRY_SECONDS, limits=limits, trust_env=False) as http:
            names = [f"s{number:04}" for number in range(sessions) if number % GAMES != GAMES - 1]
            games = sessions - len(names)
            others = [
                *(watching.watch(http, name, self.history.clients[name], self.node) for name in names),
                watching.approve(http, self.history, self.node),
            ]
            beside = [asyncio.create_task(each) for each in others]
            end = time.monotonic() + seconds
            talkers = [
                *(self._talk(http, name, number, end) for number, name in enumerate(names)),
                *(self._play(end) for _ in range(games)),
            ]
            talking = [asyncio.create_task(each) for each in talkers]
            try:
                await self.calm.wait()
                # Longer than anything takes that keeps its promises.
                left = max(0.0, end - time.monotonic()) + HANGING_SECONDS + 2 * END_SECONDS
                _, late = await asyncio.wait(talking, timeout=left)
                if late:
                    told = f"{len(late)} talkers never came to an end"
                    self.history.clients[names[0]].late.append(told)
            finally:
                self.over.set()
                for task in (*talking, *beside):
                    task.cancel()
                await asyncio.wait([*talking, *beside])
            for task in (*talking, *beside):
                if not task.cancelled() and (error := task.exception()) is not None:
                    raise error

    @asynccontextmanager
    async def approving(self) -> AsyncIterator[None]:
        """Have what is asked answered for the duration of the block."""
        async with httpx.AsyncClient(headers=HEADERS, timeout=TRY_SECONDS, trust_env=False) as http:
            task = asyncio.create_task(watching.approve(http, self.history, self.node))
            try:
                yield
            finally:
                task.cancel()
                await asyncio.wait({task})

    # Talking.

    async def _talk(self, http: httpx.AsyncClient, session: str, number: int, end: float) -> None:
        view = self.history.clients[session]
        program = HttpClient(session, self.node, http, self.troubles)
        clients: dict[str, WireClient] = {
            "http": program,
            "jsonstream": JsonStreamClient(session, self.node),
            "chat": ChatClient(session, self.node, view.saw),
            "agentproc": AgentProcClient(session, self.node),
            "openai": OpenAIClient(session, self.node, http),
            "acp": AcpClient(session, self.node),
        }
        await program.asked("/api/sessions", {"agent": "worker", "session_id": session})
        try:
            await self._think()
            while self._goes_on(end):
                wire = SHARED_WIRES[number % len(SHARED_WIRES)]
                number += 1
                hearing = self._message(wire, session)
                await self._converse(clients[wire], hearing, view)
                if hearing.is_taken:
                    view.accepted.add(hearing.mark)
                    await self._ended(view, hearing)
                await self._think()
        finally:
            for client in clients.values():
                client.close()

    async def _play(self, end: float) -> None:
        game = TryllClient(self.node, self.games)
        try:
            await self._think()
            while self._goes_on(end):
                await self._converse(game, self._message(GAME_WIRE, ""), None)
                await self._think()
        finally:
            game.close()

    async def _think(self) -> None:
        await asyncio.sleep(self.chance.uniform(0, 2 * self.think))

    def _goes_on(self, end: float) -> bool:
        return time.monotonic() < end or not self.calm.is_set()

    def _message(self, wire: str, session: str) -> Hearing:
        id, chance = uuid4().hex, self.chance.random()
        if chance < 0.15:
            between = f"tool {id[:8]}"
        elif chance < 0.5:
            between = f"sleep {self.chance.uniform(0.1, 3):.2f}"
        else:
            between = f"say {word(id, 9)}"
        text = f"say {word(id, 0)}; {between}; say {word(id, 1)}; say {word(id, 2)}"
        hearing = Hearing(wire, session, id, text)
        self.history.hearings.append(hearing)
        return hearing

    async def _converse(self, client: WireClient, hearing: Hearing, view: ClientView | None) -> None:
        """Have a client say a message, and hear its end. One that hears nothing more, and never will, hangs up."""
        conversing = asyncio.create_task(client.converse(hearing))
        try:
            while not conversing.done():
                await asyncio.wait({conversing}, timeout=_HANGING_LOOK_SECONDS)
                if not conversing.done() and (why := self._hanging(hearing, view)):
                    hearing.hanging = why
                    client.close()
                    return
        finally:
            conversing.cancel()
            await asyncio.wait({conversing})
        conversing.result()

    def _hanging(self, hearing: Hearing, view: ClientView | None) -> str:
        """Why a client hangs, if it does. Notes how long its end takes."""
        if not hearing.heard:
            return ""
        now = time.monotonic()
        disturbed = max(self.disturbed.get(NATS, 0.0), self.disturbed.get(hearing.node, 0.0))
        ended = view.ended_at(hearing.mark) if view is not None else None
        if ended is not None:
            # From here on it is for its own node to tell it.
            waited = now - max(ended, disturbed, hearing.taken_at)
            why = f"was not told on node {hearing.node} that it has ended, {now - ended:.0f} s ago"
        elif hearing.is_taken or view is None:
            waited = now - max(hearing.taken_at or hearing.began, disturbed, self.fault_at)
            why = f"has none on node {hearing.node}, after {now - hearing.began:.0f} s"
            if view is None and disturbed < now and now - hearing.began > 2 * HANGING_SECONDS:
                # Of a game nobody sees the end but itself, and faults that go on would excuse it for ever.
                return why
        else:
            return ""
        hearing.slowest = max(hearing.slowest, waited)
        return why if waited > HANGING_SECONDS else ""

    async def _ended(self, view: ClientView, hearing: Hearing) -> None:
        """Wait for the end of a message's turn, as the watcher sees it."""
        since = time.monotonic()
        while view.ended_at(hearing.mark) is None:
            waited = time.monotonic() - max(since, self.fault_at)
            hearing.slowest = max(hearing.slowest, waited)
            if waited > END_SECONDS + SEEING_SECONDS:
                view.late.append(f"message {hearing.id} had no end {waited:.1f} s after {self.fault or 'it was said'}")
                return
            await asyncio.sleep(_LOOK_SECONDS)
