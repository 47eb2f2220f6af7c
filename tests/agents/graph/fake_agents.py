"""An agent in many conversations, behind a server on loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.fake_agent import FakeAgent
from tests.support.loop import until
from tests.support.tryll_served import Peer, served
from trunkline.agents.graph.agent_models import AgentModels, offered
from trunkline.agents.graph.pool import ModelPool
from trunkline.core import events as core
from trunkline.core.agent import Capabilities, OpenRequest
from trunkline.wires.tryll import messages as m

DONE = core.TurnEnded("success")


class FakeAgents:
    """An agent with a fake for every conversation."""

    name = "fakes"
    capabilities = Capabilities()

    def __init__(self) -> None:
        self.opened: list[FakeAgent] = []
        self.fails: Exception | None = None
        self.slow: asyncio.Event | None = None
        self.stubborn = False
        """Whether it begins all the same when that is cancelled."""
        self.refuses: Exception | None = None

    async def open(self, request: OpenRequest) -> FakeAgent:
        if self.fails is not None:
            raise self.fails
        fake = FakeAgent()
        fake.refuses = self.refuses
        self.opened.append(fake)
        while self.slow is not None and not self.slow.is_set():
            try:
                await self.slow.wait()
            except asyncio.CancelledError:
                if not self.stubborn:
                    raise
        return await fake.open(request)

    async def busy(self, number: int = 0) -> FakeAgent:
        """The fake of a conversation, once it is asked something."""
        await until(lambda: len(self.opened) > number and self.opened[number].busy)
        return self.opened[number]


@asynccontextmanager
async def stage(folder: Path, fakes: FakeAgents, **options: Any) -> AsyncIterator[Peer]:
    """A client of a server that offers the fakes and the echo."""
    agents = {"echo": offered([])["echo"], "fakes": fakes}
    models = AgentModels(ModelPool(), agents, **options)
    async with served(folder, models) as server, server.peer() as peer:
        yield peer
    assert all(fake.closed for fake in fakes.opened)


def said(answers: Sequence[m.AnswerText]) -> str:
    text = ""
    for answer in answers:
        text = text + answer.text if answer.is_delta else answer.text
    return text


async def reply(
    peer: Peer, fakes: FakeAgents, agent: int, text: str, *events: core.Event
) -> tuple[str, m.TurnComplete]:
    """What the client hears of a turn in which the newest fake does these things."""
    peer.say(m.SendMessageRequest(7, agent, text))
    fake = await fakes.busy(max(0, len(fakes.opened) - 1))
    fake.say(*events)
    answers, complete = await peer.turn()
    return said(answers), complete


def problem(complete: m.TurnComplete) -> tuple[int, str]:
    assert complete.status == m.TurnStatus.ERROR
    error = json.loads(complete.debug_info)["error"]
    return error["code"], error["message"]
