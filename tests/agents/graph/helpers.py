"""Graphs in a line, and turns in another."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from trunkline.agents.graph.agent import GraphAgent
from trunkline.agents.graph.host import LocalHost
from trunkline.agents.graph.shelf import Shelf
from trunkline.agents.graph.turn import AnswerSound, AnswerTiming, Delta, NodeNotice, TurnEvent, Whole
from trunkline.core.faults import ProviderError
from trunkline.core.graph.models import SamplingParams
from trunkline.core.graph.speech import TtsMark
from trunkline.core.graph.turns import Ending
from trunkline.models.engines import Prompt, Slot
from trunkline.wires.tryll.messages import GraphDescription, NodeDescription, NodeParams


def graph(**nodes: NodeParams) -> GraphDescription:
    """The first node is the start."""
    described = tuple(NodeDescription(name, params) for name, params in nodes.items())
    return GraphDescription(described, next(iter(nodes)))


async def agent(described: GraphDescription, host: LocalHost | None = None, **options: Any) -> GraphAgent:
    made = GraphAgent(described, host or LocalHost(), default_model=options.pop("default_model", "any"), **options)
    await made.open()
    return made


#: What a listener was told, and the ending behind it.
Told = TurnEvent | Ending


class Heard:
    """A listener that keeps what it is told. It is full after so many events, until it is told to go on."""

    def __init__(self, most: int | None = None) -> None:
        self.events: list[Told] = []
        self.is_full = asyncio.Event()
        self._most = most
        self._room = asyncio.Event()

    @property
    def full(self) -> bool:
        return self._most is not None and len(self.events) >= self._most

    async def room(self) -> None:
        self.is_full.set()
        await self._room.wait()

    def go_on(self) -> None:
        self._most = None
        self._room.set()

    def delta(self, text: str) -> None:
        self.events.append(Delta(text))

    def whole(self, text: str, final: bool) -> None:
        self.events.append(Whole(text, final))

    def audio(self, pcm: bytes, sample_rate: int) -> None:
        self.events.append(AnswerSound(pcm, sample_rate))

    def timing(self, marks: tuple[TtsMark, ...]) -> None:
        self.events.append(AnswerTiming(marks))

    def event(self, node: str, type: str, pairs: tuple[tuple[str, str], ...]) -> None:
        self.events.append(NodeNotice(node, type, pairs))


async def hear(made: GraphAgent, text: str, heard: Heard) -> None:
    heard.events.append(await made.turn(text, heard))


async def take(made: GraphAgent, text: str) -> list[Told]:
    heard = Heard()
    await hear(made, text, heard)
    return heard.events


def said(events: Sequence[Told]) -> str:
    """The text of a turn. What comes whole has all that came before at its beginning."""
    text = ""
    for event in events:
        if isinstance(event, Delta):
            text += event.text
        elif isinstance(event, Whole):
            assert event.text.startswith(text)
            text = event.text
    return text


def end(events: Sequence[Told]) -> Ending:
    assert isinstance(events[-1], Ending)
    return events[-1]


def debug(events: Sequence[Told]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(end(events).debug_info)
    return found


def node_names(events: Sequence[Told]) -> list[str]:
    return [node["name"] for node in debug(events)["nodes"]]


def host_in(root: Any, **options: Any) -> LocalHost:
    return LocalHost(Shelf(str(root)), **options)


class Recorder:
    """A language engine that keeps what it was asked, and answers with what it was given."""

    tool_call_format = ""
    default_sampling: SamplingParams | None = None

    def __init__(self, *answers: str, context_size: int = 100_000, scores: Sequence[float] = ()) -> None:
        self.prompts: list[Prompt] = []
        self.sampling: list[SamplingParams] = []
        self.grammars: list[str | None] = []
        self.slots: list[Slot | None] = []
        self.released: list[Slot] = []
        self.context_size = context_size
        self.scores = list(scores)
        self.fails: Exception | None = None
        self._answers = list(answers)
        self.refused: str | None = None

    def refusal(self, sampling: SamplingParams) -> str | None:
        return self.refused

    async def generate(
        self,
        prompt: Prompt,
        sampling: SamplingParams,
        *,
        stream: bool,
        grammar: str | None = None,
        slot: Slot | None = None,
    ) -> AsyncGenerator[str, None]:
        self.prompts.append(prompt)
        self.sampling.append(sampling)
        self.grammars.append(grammar)
        self.slots.append(slot)
        if self.fails is not None:
            raise self.fails
        yield self._answers.pop(0) if self._answers else "ok"

    async def score(self, prompt: Prompt, continuations: Sequence[str], *, slot: Slot | None = None) -> list[float]:
        self.prompts.append(prompt)
        if self.fails is not None:
            raise self.fails
        return self.scores

    def count(self, text: str) -> int:
        return len(text.split())

    def release(self, slot: Slot) -> None:
        self.released.append(slot)

    def shown(self, number: int = -1) -> list[tuple[str, str]]:
        return [(message.role, message.text) for message in self.prompts[number].messages]


__all__ = [
    "Heard",
    "ProviderError",
    "Recorder",
    "Told",
    "agent",
    "debug",
    "end",
    "graph",
    "hear",
    "host_in",
    "node_names",
    "said",
    "take",
]  # fmt: skip
