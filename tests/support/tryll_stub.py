"""A small Tryll server on loopback, made of the codec alone: it echoes, and does what a test tells it to.

async with TryllStub() as stub:
    stub.answers[SendMessageRequest] = lambda peer, asked: [AnswerText(...), TurnComplete(...)]
    ...
    assert stub.asked(CreateAgentRequest)[0].graph == graph

An answer may hold bytes, which are sent as they are, and `HANG_UP` or `LEAVE`. Without one, each kind is
answered as a server in good order would.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Self, TypeVar

from tests.support.patience import PATIENCE_SECONDS
from tests.support.ports import free_port
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.codec import Framer, decode, encode, frame

M = TypeVar("M", bound=m.Message)

#: Ends the connection: at once, or when all that was said before has been heard.
HANG_UP, LEAVE = object(), object()
SILENCE: tuple[Any, ...] = ()
Answer = Callable[["Peer", Any], Sequence[Any]]


class Peer(asyncio.Protocol):
    """One connection, as the server sees it."""

    def __init__(self, stub: TryllStub) -> None:
        self.stub = stub
        self.running: dict[int, m.SendMessageRequest] = {}
        """The turns that have no end yet, by agent."""
        self._framer = Framer()
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self.stub.peers.append(self)
        self.stub.connections += 1
        self.say(self.stub.greeting)

    def data_received(self, data: bytes) -> None:
        for payload in self._framer.feed(data):
            message = decode(payload)
            self.stub.log.append((self, message))
            answer = self.stub.answers.get(type(message)) or self.stub.usual
            self.say(answer(self, message))
            self.stub.heard.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.stub.peers.remove(self)
        self.stub.heard.set()

    def say(self, answers: Sequence[Any]) -> None:
        for answer in answers:
            if answer is HANG_UP:
                self._transport.abort()
            elif answer is LEAVE:
                self._transport.close()
            else:
                self._transport.write(answer if isinstance(answer, bytes) else frame(encode(answer)))


class TryllStub:
    """The server. `greeting` is how each connection begins."""

    def __init__(self) -> None:
        self.port = 0
        self.connections = 0
        self.extensions: tuple[str, ...] = ("cancel", "history", "health")
        self.answers: dict[type[m.Message], Answer] = {}
        self.log: list[tuple[Peer, m.Message]] = []
        self.peers: list[Peer] = []
        self.heard = asyncio.Event()
        self.models: dict[str, m.ModelInfo] = {}
        self.greeted: Sequence[Any] | None = None
        self._ids = count(1)
        self._server: asyncio.Server | None = None

    @property
    def greeting(self) -> Sequence[Any]:
        if self.greeted is not None:
            return self.greeted
        return (m.SessionReady(m.PROTOCOL_VERSION, 100 + len(self.peers), self.extensions),)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self.port = self.port or free_port()
        self._server = await loop.create_server(lambda: Peer(self), "127.0.0.1", self.port)

    async def stop(self) -> None:
        """Hang up on everybody, and listen no longer."""
        assert self._server is not None
        self._server.close()
        self.hang_up()
        await self._server.wait_closed()

    def hang_up(self) -> None:
        for peer in list(self.peers):
            peer.say([HANG_UP])

    def asked(self, kind: type[M]) -> list[M]:
        return [message for _, message in self.log if isinstance(message, kind)]

    async def until_asked(self, kind: type[M], times: int = 1) -> M:
        """The message of that kind, as soon as so many have come."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(found := self.asked(kind)) < times:
                self.heard.clear()
                await self.heard.wait()
        return found[-1]

    def usual(self, peer: Peer, asked: Any) -> Sequence[Any]:
        number = asked.request_id
        match asked:
            case m.ConfigureSessionRequest():
                return [m.ConfigureSessionResponse(number)]
            case m.CreateAgentRequest():
                return [m.CreateAgentResponse(number, next(self._ids))]
            case m.SendMessageRequest():
                return echo(asked)
            case m.CreateStringStorageRequest():
                return [m.CreateStringStorageResponse(number, asked.name)]
            case m.CreateEmbeddedStringStorageRequest():
                return [m.CreateEmbeddedStringStorageResponse(number, asked.name, len(asked.strings), 384)]
            case m.ListModelsRequest():
                return [m.ListModelsResponse(number, tuple(self.models.values()))]
            case m.DownloadModelRequest() | m.LoadModelRequest() if asked.model_name not in self.models:
                return [m.ErrorResponse(number, 6002, f"no model `{asked.model_name}`")]
            case m.DownloadModelRequest():
                self._set(asked.model_name, m.ModelStatus.DOWNLOADED)
                half = m.DownloadProgress(number, asked.model_name, 5, 10, 50.0)
                return [half, m.DownloadComplete(number, asked.model_name, True)]
            case m.LoadModelRequest():
                self._set(asked.model_name, m.ModelStatus.LOADED)
                return [m.LoadModelResponse(number, asked.model_name)]
            case m.SaveHistoryRequest():
                first, second = m.HistoryEntry("user", "a"), m.HistoryEntry("assistant", "b")
                return [
                    m.SaveHistoryResponse(number, asked.agent_id, (first,), True),
                    m.SaveHistoryResponse(number, asked.agent_id, (second,)),
                ]
            case m.HealthRequest():
                return [m.HealthResponse(number, "ready", 12, len(self.peers))]
        return [*ended(peer, asked), m.Ack(number)]

    def _set(self, name: str, status: int) -> None:
        self.models[name] = self.models[name].replace(status=status)


def echo(asked: m.SendMessageRequest) -> list[m.Message]:
    """A turn that says the words of the message, one by one."""
    number, agent, words = asked.request_id, asked.agent_id, asked.text.split()
    said: list[m.Message] = [m.AnswerText(number, agent, f"{word} ", True) for word in words]
    return [
        *said,
        m.AnswerText(number, agent, "", True, True),
        m.TurnComplete(number, agent, tokens_generated=len(words)),
    ]


def held(peer: Peer, asked: m.SendMessageRequest) -> list[m.Message]:
    """A turn that begins, and has no end before it is cancelled or its agent destroyed."""
    peer.running[asked.agent_id] = asked
    return [m.AnswerText(asked.request_id, asked.agent_id, "Well ", True)]


def ended(peer: Peer, asked: Any) -> list[m.Message]:
    """The end of a held turn, for what ends it."""
    if not isinstance(asked, m.CancelTurnRequest | m.DestroyAgentRequest):
        return []
    turn = peer.running.pop(asked.agent_id, None)
    if turn is None:
        return []
    final = m.AnswerText(turn.request_id, turn.agent_id, "", True, True)
    return [final, m.TurnComplete(turn.request_id, turn.agent_id, m.TurnStatus.CANCELLED)]
