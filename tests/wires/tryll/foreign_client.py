"""A client as other people write theirs: the generated code and its runtime, and four bytes before each frame."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from struct import pack, unpack
from typing import Any, Protocol

from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_asking import TryllAsking
from tests.wires.tryll import foreign
from trunkline.wires.tryll import messages as m

MAX_FRAME = 1 << 20


class Somewhere(Protocol):
    """A server's address."""

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...


class Foreigner(TryllAsking):
    """One connection. Nothing of ours encodes, decodes or frames what it says and hears."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def say(self, *messages: m.Message) -> None:
        for message in messages:
            self.write(foreign.build(message))

    def write(self, payload: bytes) -> None:
        """Send a payload, whatever it is."""
        self.writer.write(pack("<I", len(payload)) + payload)

    async def hear(self) -> Any:
        """The next message; None at the end. Half a frame before the end is a failure."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            head = await self.reader.read(1)
            if not head:
                return None
            head += await self.reader.readexactly(3)
            (length,) = unpack("<I", head)
            assert 0 < length <= MAX_FRAME
            return foreign.read(await self.reader.readexactly(length))

    async def refused(self, request: m.Message) -> m.ErrorResponse:
        """The error, which is about this request and can be shown to people."""
        error = await self.ask(request, m.ErrorResponse)
        assert error.request_id == getattr(request, "request_id", 0)
        assert error.message
        assert error.message.isprintable()
        return error

    async def rest(self) -> list[Any]:
        """Everything up to the end."""
        heard = []
        while (message := await self.hear()) is not None:
            heard.append(message)
        return heard

    async def turn(self) -> tuple[list[m.AnswerText], m.TurnComplete, list[m.NodeEvent]]:
        """A whole turn: one final answer, which is the last, and then one end."""
        answers: list[m.AnswerText] = []
        events: list[m.NodeEvent] = []
        while not isinstance(heard := await self.hear(), m.TurnComplete):
            assert isinstance(heard, m.AnswerText | m.NodeEvent), heard
            if isinstance(heard, m.NodeEvent):
                events.append(heard)
            else:
                answers.append(heard)
        assert [answer.is_final for answer in answers] == [False] * (len(answers) - 1) + [True]
        assert {(each.request_id, each.agent_id) for each in answers} == {(heard.request_id, heard.agent_id)}
        return answers, heard, events

    async def configure(self, **options: Any) -> None:
        await self.ask(m.ConfigureSessionRequest(1, **options), m.ConfigureSessionResponse)

    async def agent(self, graph: m.GraphDescription, model: str = "any", **options: Any) -> int:
        request = m.CreateAgentRequest(2, graph, model, **options)
        return (await self.ask(request, m.CreateAgentResponse)).agent_id


@asynccontextmanager
async def foreigner(server: Somewhere, *, configured: bool = True, **options: Any) -> AsyncIterator[Foreigner]:
    """A session, which is configured with these options unless it is not to be."""
    reader, writer = await asyncio.open_connection(server.host, server.port)
    client = Foreigner(reader, writer)
    try:
        ready = await client.get(m.SessionReady)
        assert ready.protocol_version == 2
        assert ready.session_id
        if configured:
            await client.configure(**options)
        yield client
    finally:
        writer.transport.abort()


def text_of(answers: list[m.AnswerText]) -> str:
    """What a client shows: deltas are added, and whole texts replace what was there."""
    shown = ""
    for answer in answers:
        shown = shown + answer.text if answer.is_delta else answer.text
    return shown


def graph(**nodes: m.NodeParams) -> m.GraphDescription:
    """The first node is the start."""
    return m.GraphDescription(tuple(m.NodeDescription(name, node) for name, node in nodes.items()), next(iter(nodes)))
