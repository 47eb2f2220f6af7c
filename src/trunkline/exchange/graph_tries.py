"""A message tried on a graph as it is being written: one turn of a conversation that nobody keeps.

It is what `trunkline graph run` does: the graph may call all of its own tools, which nobody carries out, and an agent
that it names may do nothing that needs to be allowed. What models use for it is counted, within the agent's budget.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal

from trunkline.agents.graph.tried_turn import TurnHeard
from trunkline.base.redact import Redactor
from trunkline.base.values import Value
from trunkline.core.approvals import Policy
from trunkline.core.events import UserMessage
from trunkline.core.faults import AgentTimeout
from trunkline.core.ids import new_id
from trunkline.core.log import MemoryLog
from trunkline.core.redaction import Redaction
from trunkline.core.session import Session
from trunkline.exchange.budgets import SessionMeter
from trunkline.exchange.graph_files import AgentGraph
from trunkline.exchange.row_writer import Work

if TYPE_CHECKING:
    from trunkline.agents.graph.yaml_graph import GraphFile

#: For all of it, also for fetching a model: whoever waits longer is better off with a conversation.
TRY_SECONDS = 120.0

#: `mock` needs no model and repeats the message; `models` are those that the graph names.
TryEngine = Literal["mock", "models"]


class TriedStep(Value):
    """A node that ran. `exit` is empty if it did not come to its end."""

    node: str
    type: str
    exit: str
    ms: float
    decided: str


class TriedTool(Value):
    """A tool that the graph called."""

    name: str
    arguments: Mapping[str, Any]


class TriedTurn(Value):
    """What came of a message. `error` is empty unless something failed; `svg` if no node ran."""

    outcome: str
    answer: str
    error: str
    ms: float
    tokens: int
    path: tuple[TriedStep, ...]
    tools: tuple[TriedTool, ...]
    svg: str


class GraphTries:
    """The tries that are under way, one for each that asks: a new one takes the place of the one before."""

    def __init__(self, seconds: float = TRY_SECONDS) -> None:
        self._seconds = seconds
        self._sessions: dict[str, Session] = {}

    def close(self) -> None:
        """Stop all of them."""
        for who in tuple(self._sessions):
            self.stop(who)

    @property
    def running(self) -> int:
        """How many there are."""
        return len(self._sessions)

    async def run(
        self,
        who: str,
        graph: AgentGraph,
        file: GraphFile,
        message: str,
        engine: TryEngine,
        secrets: Redactor,
        meter: SessionMeter | None = None,
        person: str = "",
    ) -> TriedTurn:
        """Have a message answered by what a graph's file says. It runs as the graph's agent would: with the options and
        in the workspace of this one. What keeps it from answering is in the turn; `secrets` are masked in all of it.

        Args:
            meter: what counts it as somebody's turn, and knows how long one may take; None: it costs nothing.
            A turn that the budget does not allow says so.

        Raises:
            DatabaseGone: it cannot be counted.
        """
        from trunkline.agents.graph.conversation import GraphFileAgent

        user = graph.user
        options = dict(user.options) if user is not None and engine == "models" else {}
        workspace = user.workspace if user is not None else graph.folder
        agent = GraphFileAgent(
            file,
            graph.name,
            graph.folder,
            mock=True if engine == "mock" else None,
            models_dir=options.pop("models_dir", None),
            keeps_memories=False,
        )
        session = await Session.open(
            agent,
            MemoryLog(new_id(), keep=0),
            Policy(allow=agent.tools, interactive=False),
            workspace=workspace,
            options={**options, "diagnostics": True},
            redact=Redaction(secrets),
            meter=meter,
        )
        heard = TurnHeard()
        session.attach(heard)
        self.stop(who)
        self._sessions[who] = session
        seconds = min(self._seconds, (meter and meter.seconds_per_turn) or self._seconds)
        try:
            session.submit(UserMessage(message))
            async with _counted(meter, heard, person), asyncio.timeout(seconds):
                await session.at_rest()
        except TimeoutError:
            heard.failed = str(AgentTimeout(_late(heard, seconds)))
        finally:
            if self._sessions.get(who) is session:
                del self._sessions[who]
            await session.close()
        return await asyncio.to_thread(_turn, heard, file)

    def stop(self, who: str) -> bool:
        """Stop the one that is under way; whether there was one."""
        session = self._sessions.pop(who, None)
        if session is not None:
            session.stop()
        return session is not None


@asynccontextmanager
async def _counted(meter: SessionMeter | None, heard: TurnHeard, person: str) -> AsyncIterator[None]:
    """Count the turn of the block, however it ends."""
    if meter is None:
        yield
        return
    kept: list[Work] = []
    meter.keep, meter.now = kept.append, lambda: (1, person)

    async def count() -> None:
        await meter.turn_began(1)
        for work in kept:
            await work()
        await meter.turn_ended(1, heard.usage, person)

    try:
        yield
    finally:
        # What was used was used, also if nobody waits for the answer any more.
        await asyncio.shield(count())


def _late(heard: TurnHeard, seconds: float) -> str:
    """What is told of a turn that took longer."""
    last = f" The last that was heard: {heard.progress}." if heard.progress else ""
    return f"The turn took longer than {seconds:g} s and was stopped.{last}"


def _turn(heard: TurnHeard, file: GraphFile) -> TriedTurn:
    """All of it, with its picture."""
    from trunkline.agents.graph.drawing import recorded, svg

    found = recorded.read(dict(heard.diagnostics or {"nodes": []}))
    return TriedTurn(
        "error" if heard.failed else heard.outcome,
        heard.text,
        heard.failed,
        found.wall_ms,
        found.tokens,
        tuple(TriedStep(each.name, each.type, each.exit, each.ms, recorded.decision(each)) for each in found.steps),
        tuple(TriedTool(name, arguments) for name, arguments in heard.tools),
        svg.draw(file.graph, turn=found, page=False) if found.steps else "",
    )
