"""An agent in many conversations, behind a server on loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.loop import until
from tests.support.puppet import Puppet
from tests.support.tryll_served import Peer, served
from trunkline.agents.graph.agent_models import AgentModels, offered
from trunkline.agents.graph.pool import ModelPool
from trunkline.core import events as core
from trunkline.core.agent import Capabilities, OpenRequest
from trunkline.wires.tryll import messages as m

DONE = core.TurnEnded("success")


class Troupe:
    """An agent with a puppet for every conversation."""

    name = "troupe"
    capabilities = Capabilities()

    def __init__(self) -> None:
        self.puppets: list[Puppet] = []
        self.fails: Exception | None = None
        self.slow: asyncio.Event | None = None
        self.stubborn = False
        """Whether it begins all the same when that is cancelled."""
        self.refuses: Exception | None = None

    async def open(self, request: OpenRequest) -> Puppet:
        if self.fails is not None:
            raise self.fails
        puppet = Puppet()
        puppet.refuses = self.refuses
        self.puppets.append(puppet)
        while self.slow is not None and not self.slow.is_set():
            try:
                await self.slow.wait()
            except asyncio.CancelledError:
                if not self.stubborn:
                    raise
        return await puppet.open(request)

    async def busy(self, number: int = 0) -> Puppet:
        """The puppet of a conversation, once it is asked something."""
        await until(lambda: len(self.puppets) > number and self.puppets[number].busy)
        return self.puppets[number]


@asynccontextmanager
async def stage(folder: Path, troupe: Troupe, **options: Any) -> AsyncIterator[Peer]:
    """A client of a server that offers the troupe and the echo."""
    agents = {"echo": offered([])["echo"], "troupe": troupe}
    models = AgentModels(ModelPool(str(folder / "cache")), agents, **options)
    async with served(folder, models) as server, server.peer() as peer:
        yield peer
    assert all(puppet.closed for puppet in troupe.puppets)


def said(answers: Sequence[m.AnswerText]) -> str:
    text = ""
    for answer in answers:
        text = text + answer.text if answer.is_delta else answer.text
    return text


async def reply(peer: Peer, troupe: Troupe, agent: int, text: str, *events: core.Event) -> tuple[str, m.TurnComplete]:
    """What the client hears of a turn in which the newest puppet does these things."""
    peer.say(m.SendMessageRequest(7, agent, text))
    puppet = await troupe.busy(max(0, len(troupe.puppets) - 1))
    puppet.say(*events)
    answers, complete = await peer.turn()
    return said(answers), complete


def problem(complete: m.TurnComplete) -> tuple[int, str]:
    assert complete.status == m.TurnStatus.ERROR
    error = json.loads(complete.debug_info)["error"]
    return error["code"], error["message"]
