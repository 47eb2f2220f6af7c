"""A Tryll server in the test's own event loop, and a client that knows nothing but frames."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_asking import TryllAsking
from trunkline.agents.graph.hosting import LocalGraphHost, Models, Voices
from trunkline.agents.graph.pool import ModelPool
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.codec import Framer, decode, encode, frame
from trunkline.wires.tryll.serve import ServerSettings, TryllServer


class Peer(TryllAsking):
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._framer = Framer()
        self._frames: list[bytes] = []

    def say(self, *messages: m.Message) -> None:
        self.writer.write(b"".join(frame(encode(message)) for message in messages))

    async def hear(self) -> m.Message | None:
        """The next message; None at the end. A frame that is cut off is a failure."""
        while not self._frames:
            async with asyncio.timeout(PATIENCE_SECONDS):
                data = await self.reader.read(1 << 16)
            if not data:
                assert not self._framer.held, "a frame was cut off"
                return None
            self._frames += self._framer.feed(data)
        return decode(self._frames.pop(0))

    async def refused(self, request: m.Message) -> int:
        """The number of the error, which is about this request."""
        error = await self.ask(request, m.ErrorResponse)
        assert error.request_id == getattr(request, "request_id", 0)
        assert error.message
        return error.code

    async def turn(self) -> tuple[list[m.AnswerText], m.TurnComplete]:
        """A whole turn, of which every rule holds."""
        answers: list[m.AnswerText] = []
        while True:
            heard = await self.hear()
            if isinstance(heard, m.TurnComplete):
                assert [answer.is_final for answer in answers] == [False] * (len(answers) - 1) + [True]
                assert {(each.request_id, each.agent_id) for each in answers} == {(heard.request_id, heard.agent_id)}
                return answers, heard
            if not isinstance(heard, m.NodeEvent):
                assert isinstance(heard, m.AnswerText), heard
                answers.append(heard)

    async def configure(self, **options: Any) -> None:
        await self.ask(m.ConfigureSessionRequest(1, **options), m.ConfigureSessionResponse)

    async def agent(self, model: str = "any", **options: Any) -> int:
        """The id of an agent that says what it hears."""
        request = m.CreateAgentRequest(2, echo(), model, **options)
        return (await self.ask(request, m.CreateAgentResponse)).agent_id


def echo(**options: Any) -> m.GraphDescription:
    node = m.NodeDescription("say", m.GenerateParams(**({"stream": True} | options)))
    return m.GraphDescription((node,), "say")


class Served:
    """The server and its address."""

    def __init__(self, server: TryllServer, host: str, port: int) -> None:
        self.server = server
        self.host = host
        self.port = port

    @asynccontextmanager
    async def peer(self, *, configured: bool = True) -> AsyncIterator[Peer]:
        reader, writer = await asyncio.open_connection(self.host, self.port)
        peer = Peer(reader, writer)
        try:
            ready = await peer.get(m.SessionReady)
            assert ready.protocol_version == 2
            if configured:
                await peer.configure()
            yield peer
        finally:
            writer.transport.abort()


@asynccontextmanager
async def served(
    folder: Path, pool: Models | None = None, voices: Voices | None = None, **settings: Any
) -> AsyncIterator[Served]:
    """Serve with a storage root, and an empty place for models."""
    pool = pool if pool is not None else ModelPool()
    (folder / "root").mkdir(exist_ok=True)
    graphs = LocalGraphHost(pool, str(folder / "root"), voices=voices)
    server = TryllServer(graphs, ServerSettings(**settings))
    host, port = await server.listen("127.0.0.1", 0)
    try:
        yield Served(server, host, port)
    finally:
        await server.close()
        await graphs.close()
    assert not server.turns
    assert not server.connections
    assert not server.agents
