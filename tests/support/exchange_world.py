"""An exchange whose agent does what the messages say, and which can be killed and started again in one process."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.loop import until
from tests.support.simulated import SimulatedDatabase
from trunkline.base.redact import Redactor
from trunkline.core.agent import Agent, Approve, Capabilities, Change, Decision, OpenRequest
from trunkline.core.events import (
    Envelope,
    Event,
    TextDelta,
    ToolCancelled,
    ToolFinished,
    ToolRequested,
    ToolStarted,
    TurnEnded,
    UserMessage,
)
from trunkline.core.usage import Usage
from trunkline.exchange.approvals import Approval
from trunkline.exchange.budgets import Budgets
from trunkline.exchange.directory import Directory
from trunkline.exchange.live_session import LiveSession
from trunkline.exchange.schema import FORM
from trunkline.exchange.settings import AgentBudget, AgentSettings
from trunkline.exchange.switchboard import Switchboard
from trunkline.models.prices import Price
from trunkline.store.database import Database
from trunkline.store.database.opening import open_database
from trunkline.store.files import FileStore

#: 2026-11-16 12:00 UTC, in milliseconds.
NOON = 1_794_830_400_000


class CommandedAgent:
    """An agent that is told what to do: `say hello; tool t1; spend 100; wait; sleep 5; crash; vanish`.

    It outlives the exchange, as the world does: `ran` counts the tools that it ran, by session and call.
    """

    name = "agent"

    def __init__(self, *, continues: bool = True, steerable: bool = True) -> None:
        self.capabilities = Capabilities(approval=True, resume=True, continues=continues, steerable=steerable)
        self.ran: Counter[tuple[str, str]] = Counter()
        self.heard: list[str] = []
        self.opened = 0
        self.is_open: set[CommandedConversation] = set()
        self.gate = asyncio.Event()
        """What `wait` waits for."""
        self.settings: object = None
        """What the exchange looks at of an agent's own: its prices."""
        self.refuses: Exception | None = None
        """What opening raises, if anything."""
        self.refusing: Callable[[], Exception | None] = lambda: self.refuses
        """The same, where it differs from time to time."""

    async def open(self, request: OpenRequest) -> CommandedConversation:
        await asyncio.sleep(0)
        if (refusal := self.refusing()) is not None:
            raise refusal
        self.opened += 1
        conversation = CommandedConversation(self, request)
        self.is_open.add(conversation)
        return conversation


class CommandedConversation:
    """One dialogue. Its place in a message is in the journal, so that a turn can outlive the process."""

    session_id = None

    def __init__(self, agent: CommandedAgent, request: OpenRequest) -> None:
        self._agent = agent
        self._request = request
        self._decisions: dict[str, asyncio.Future[Decision]] = {}
        self._running = False

    def turn(self, message: UserMessage) -> AsyncIterator[Event]:
        self._agent.heard.append(message.text)
        return self._play(message.text.split(";"), 0)

    def go_on(self, message: UserMessage) -> AsyncIterator[Event]:
        return self._play(message.text.split(";"), int(self._request.journal.records[-1]))

    def steer(self, message: UserMessage) -> bool:
        if self._running:
            self._agent.heard.append(message.text)
        return self._running

    async def _play(self, steps: list[str], start: int) -> AsyncIterator[Event]:
        self._running = True
        used = 0
        try:
            for place, step in enumerate(steps[start:], start):
                verb, _, rest = step.strip().partition(" ")
                match verb:
                    case "say":
                        yield TextDelta(rest)
                    case "tool":
                        self._request.journal.append(place)
                        async for event in self._tool(rest):
                            yield event
                    case "spend":
                        assert self._request.meter is not None
                        self._request.meter.check()
                        self._request.meter.spent(Usage(int(rest), 0), "agent-1")
                        used += int(rest)
                    case "wait":
                        await self._agent.gate.wait()
                    case "sleep":
                        await asyncio.sleep(float(rest))
                    case "crash":
                        raise RuntimeError("told to")
                    case "vanish":
                        return
            self._running = False
            yield TurnEnded("success", Usage(used, 0))
        finally:
            self._running = False

    async def _tool(self, call_id: str) -> AsyncIterator[Event]:
        decision = self._decisions.setdefault(call_id, asyncio.get_running_loop().create_future())
        asked = [request for request in self._request.waiting if request.call_id == call_id]
        args = {"file_path": call_id, "key": SECRET if call_id.startswith("secret") else ""}
        yield asked[0] if asked else ToolRequested(call_id, "Write", "edit", args)
        try:
            answer = await decision
        finally:
            del self._decisions[call_id]
        if isinstance(answer, Approve):
            yield ToolStarted(call_id, "Write")
            self._agent.ran[self._request.session_id, call_id] += 1
            yield ToolFinished(call_id, "Write", "success", "done")
        else:
            yield ToolCancelled(call_id, "denied")

    async def decide(self, call_id: str, decision: Decision) -> None:
        future = self._decisions.setdefault(call_id, asyncio.get_running_loop().create_future())
        if not future.done():
            future.set_result(decision)

    async def configure(self, change: Change) -> None: ...

    async def cancel(self) -> None:
        for future in tuple(self._decisions.values()):
            future.cancel()

    async def close(self) -> None:
        self._agent.is_open.discard(self)


#: In the arguments of every call: what is shown differs from what the agent asks.
SECRET = "sk-this-is-a-secret-of-the-world"


class Life:
    """One process of the exchange."""

    def __init__(self, world: World, switchboard: Switchboard, database: Database) -> None:
        self.world = world
        self.switchboard = switchboard
        self.database = database
        self.budgets = switchboard.budgets

    async def open(self, id: str = "s1", agent: str = "agent") -> LiveSession:
        return await self.switchboard.open(agent, id, by="ana")

    async def say(self, live: LiveSession, text: str, id: str | None = None, **kwargs: Any) -> int:
        return await self.switchboard.submit(live, UserMessage(text, id=id, sender="ana"), **kwargs)

    async def pending(self) -> Approval:
        """The one call that a person is asked about; waits until there is one."""
        await until(lambda: self.world.asked)
        (found,) = await self.switchboard.approvals.found("pending")
        return found

    async def rest(self, live: LiveSession) -> None:
        """Wait until all is answered and written down."""
        await live.session.at_rest()
        await live.written()


class World:
    """A home on the disk, a clock, and the agents by name."""

    def __init__(self, home: Path, budget: AgentBudget | None = None, **agents: Agent) -> None:
        self.home = home
        self.sessions = home / "sessions"
        self.now = NOON
        self.agents = agents
        self.budget = budget or AgentBudget()
        self.evict_seconds = 900.0
        self.asked: list[str] = []
        """The calls that people were told of."""
        self.opening: Callable[[], Any] = lambda: open_database(f"sqlite:///{home / 'exchange.db'}", FORM)

    def simulate(self, chance: random.Random | None = None) -> SimulatedDatabase:
        """Have a database in the loop, for virtual time."""
        database = SimulatedDatabase(FORM, chance or random.Random(0))

        async def opened() -> Database:
            return database.connect()

        self.opening = opened
        return database

    async def _make(self, name: str, options: Mapping[str, Any]) -> Agent:
        return self.agents[name]

    @asynccontextmanager
    async def living(self) -> AsyncIterator[Life]:
        """A process from its start to its end in good order."""
        database = await self.opening()
        try:
            life = await self.begin(database)
            try:
                await life.switchboard.start()
                yield life
            finally:
                await life.switchboard.close()
        finally:
            await database.close()

    async def begin(self, database: Database) -> Life:
        """All but the start of the switchboard."""
        settings = {
            name: AgentSettings(name, name, str(self.home), allow=(), budget=self.budget) for name in self.agents
        }
        budgets = Budgets(database, lambda: self.now, _cost)
        await budgets.open(dict.fromkeys(self.agents, self.budget))
        switchboard = Switchboard(
            Directory(settings, self._make, lambda: self.now),
            database,
            str(self.sessions),
            budgets,
            Redactor((SECRET,)),
            clock=lambda: self.now,
            evict_seconds=self.evict_seconds,
            told=lambda approval: self.asked.append(approval.call_id),
        )
        return Life(self, switchboard, database)

    def log(self, session: str) -> list[Envelope]:
        """What is in a session's log."""
        found = FileStore(self.sessions).peek(session).records
        return [item for item in found if isinstance(item, Envelope) and not item.event.private]

    def kinds(self, session: str) -> list[str]:
        """The events of a session, by their names."""
        return [type(item.event).__name__ for item in self.log(session)]

    def ends(self, session: str) -> list[str]:
        """How the turns of a session ended, in order."""
        return [item.event.outcome for item in self.log(session) if isinstance(item.event, TurnEnded)]


def _cost(model: str, usage: Usage, own: Price | None) -> float:
    """A dollar for a million tokens, unless somebody knows better."""
    return (usage.input_tokens or 0) * (own.input if own else 1.0) / 1_000_000
