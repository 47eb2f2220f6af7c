"""What a turn of a graph costs in a session of the core, and by itself, which is how the Tryll server runs it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from bench._measure import Row, Taken, interleaved, time_row

from trunkline.agents.graph import yaml_graph
from trunkline.agents.graph.agent import GraphAgent
from trunkline.agents.graph.conversation import GraphFileAgent
from trunkline.agents.graph.host import LocalHost
from trunkline.core.approvals import Policy
from trunkline.core.events import Envelope, TurnEnded, UserMessage
from trunkline.core.graph.speech import TtsMark
from trunkline.core.log import MemoryLog
from trunkline.core.session import Session

GRAPH = b"start: answer\ndefault_model: mock\nnodes:\n  answer: {type: Generate, stream: true}\n"
TEXT = "one two three"


class _Nobody:
    """A `Listener` that looks at nothing."""

    full = False

    async def room(self) -> None:
        pass

    def delta(self, text: str) -> None:
        pass

    def whole(self, text: str, final: bool) -> None:
        pass

    def audio(self, pcm: bytes, sample_rate: int) -> None:
        pass

    def timing(self, marks: tuple[TtsMark, ...]) -> None:
        pass

    def event(self, node: str, type: str, pairs: tuple[tuple[str, str], ...]) -> None:
        pass


class _Sink:
    """Waits for the end of a turn, and looks at nothing else."""

    congested = False

    def __init__(self) -> None:
        self.ended = asyncio.Event()

    async def drain(self) -> None:
        pass

    def show(self, envelopes: Sequence[Envelope]) -> None:
        if any(isinstance(each.event, TurnEnded) for each in envelopes):
            self.ended.set()


def turn_row(turns: int, rounds: int) -> Row:
    """The row: so many turns in one measurement, each in a conversation of that length."""
    file = yaml_graph.parse(GRAPH, "graph.yaml")
    with asyncio.Runner() as runner:

        async def in_session() -> Taken:
            session = await Session.open(GraphFileAgent(file, "graph:bench", "."), MemoryLog("s", keep=0), Policy())
            sink = _Sink()
            session.attach(sink)

            async def turn() -> None:
                sink.ended.clear()
                session.submit(UserMessage(TEXT))
                await sink.ended.wait()

            try:
                return await _taken(turn, turns)
            finally:
                await session.close()

        async def alone() -> Taken:
            agent = GraphAgent(file.graph, LocalHost(), default_model="mock")
            await agent.open()
            loop = asyncio.get_running_loop()

            async def turn() -> None:
                await loop.create_task(agent.turn(TEXT, _Nobody()))

            try:
                return await _taken(turn, turns)
            finally:
                agent.close()

        pairs = interleaved(rounds, lambda: runner.run(in_session()), lambda: runner.run(alone()))
    return time_row("a turn of a graph in a session of the core", pairs, "by itself", unit="us")


async def _taken(turn: Callable[[], Awaitable[None]], turns: int) -> Taken:
    """What a turn takes, after the first, which gets what all of them need."""
    await turn()
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(turns):
        await turn()
    return Taken((time.perf_counter() - wall) / turns, (time.process_time() - cpu) / turns)
