"""The clients of the exchange's benchmark: many sessions at once on one wire, from their beginning to their answer."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from bench._exchange_script import NAMES, TOKEN, WORDS
from bench._http_load import load, request
from bench._peers import PATIENCE_SECONDS, PYTHON, Peer

from trunkline.base import attach, local_socket
from trunkline.base.attach import AttachHeader
from trunkline.wires.tryll.codec import Framer, decode, encode, frame
from trunkline.wires.tryll.messages import (
    ConfigureSessionRequest,
    ConfigureSessionResponse,
    CreateAgentRequest,
    CreateAgentResponse,
    ErrorResponse,
    GenerateParams,
    GraphDescription,
    NodeDescription,
    SendMessageRequest,
    SessionReady,
    TurnComplete,
)

SERVER = str(Path(__file__).with_name("_exchange_server.py"))

#: Connections on which the requests are made that are answered at once.
CONNECTIONS = 32
#: How many connect at the same time: the system keeps only so many for a server that is busy.
CONNECTING = 100

AUTHORIZED = {"Authorization": f"Bearer {TOKEN}"}

#: No shorter than what is looked for.
LONGEST_WORD = 64

#: What the agent that says the time has said.
TIMES = re.compile(rb"@(\d+)@")


class Server(Peer):
    """One of the servers; `kind` as `_exchange_server.py` has it."""

    def __init__(self, kind: str, home: str) -> None:
        super().__init__([PYTHON, SERVER, kind, home], home)
        reached = json.loads(self.line())
        self.http: int = reached["http"]
        self.home = home
        self.tryll: int = reached["tryll"]
        self.numbers = count()
        """Of its sessions."""


class Listener(asyncio.Protocol):
    """A client that hears one answer, and keeps how long each piece of it took since the agent said it."""

    def __init__(self, end: bytes, word: bytes) -> None:
        """`end` is what the answer's last event has; `word` what every one of its words has."""
        loop = asyncio.get_running_loop()
        self.over: asyncio.Future[None] = loop.create_future()
        self.connected: asyncio.Future[None] = loop.create_future()
        self.late_ns: list[int] = []
        self._end = end
        self._word = word
        self._rest = b""
        self.words = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter_ns()
        if not self.connected.done():
            self.connected.set_result(None)
        # What was seen before is seen again, and left out: a word may come in two pieces.
        before, data = len(self._rest), self._rest + data
        self.words += data.count(self._word) - self._rest.count(self._word)
        self.late_ns += (now - int(found[1]) for found in TIMES.finditer(data) if found.end() > before)
        self._rest = data[-LONGEST_WORD:]
        if self._end in data and not self.over.done():
            self.over.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        for future in (self.connected, self.over):
            if not future.done():
                future.set_exception(AssertionError(f"the connection was lost: {error}"))


class GameListener(Listener):
    """A client of the Tryll wire, which must ask for an agent first."""

    def __init__(self, agent: str, text: str) -> None:
        super().__init__(b"", b"")
        self._framer = Framer()
        self._text = text
        self._graph = GraphDescription((NodeDescription("say", GenerateParams(f"agent:{agent}", stream=True)),), "say")

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter_ns()
        for payload in self._framer.feed(data):
            if self.connected.done() and (found := TIMES.search(payload)) is not None:
                self.late_ns.append(now - int(found[1]))
            message = decode(payload)
            match message:
                case SessionReady():
                    self._send(encode(ConfigureSessionRequest(1)))
                case ConfigureSessionResponse():
                    self._send(encode(CreateAgentRequest(2, self._graph)))
                case CreateAgentResponse(agent_id=agent):
                    self._send(encode(SendMessageRequest(3, agent, self._text)))
                    self.connected.set_result(None)
                case TurnComplete():
                    self.over.set_result(None)
                case ErrorResponse(message=problem):
                    raise AssertionError(problem)
                case _:
                    self.words += 1

    def _send(self, payload: bytes) -> None:
        self.transport.write(frame(payload))


Agents = tuple[str, ...]


async def http(server: Server, sessions: int, agents: Agents = NAMES, text: str = "Go.") -> list[Listener]:
    """So many sessions over HTTP: each is begun, read by one reader, and sent a message."""
    ids = [f"s{next(server.numbers)}" for _ in range(sessions)]
    begin = [
        post("/api/sessions", {"agent": agents[number % len(agents)], "session_id": id})
        for number, id in enumerate(ids)
    ]
    await load(server.http, begin, min(CONNECTIONS, sessions))
    listeners = await readers(server, ids)
    await load(server.http, [message(id, text) for id in ids], min(CONNECTIONS, sessions))
    return listeners


async def readers(server: Server, ids: list[str]) -> list[Listener]:
    """Readers of these sessions, one for each, that are being served."""
    listeners = [Listener(b"event: turn_ended", b"event: text_delta") for _ in ids]
    for some in grouped(len(ids)):
        for number in some:
            await _connected(server.http, listeners[number])
            path = f"/api/sessions/{ids[number]}/events"
            listeners[number].transport.write(request("GET", path, AUTHORIZED))
        await asyncio.gather(*(listeners[number].connected for number in some))
    return listeners


def post(path: str, body: object) -> bytes:
    """A request with a body."""
    return request("POST", path, AUTHORIZED, json.dumps(body).encode())


def message(id: str, text: str) -> bytes:
    """A request that sends a message."""
    return post(f"/api/sessions/{id}/messages", {"text": text})


async def jsonstream(server: Server, sessions: int, agents: Agents = NAMES, text: str = "Go.") -> list[Listener]:
    """So many hosts of the JSON stream, each with a session."""
    said = json.dumps({"type": "message", "msg_id": "m1", "input": text}, separators=(",", ":")).encode() + b"\n"
    listeners = [Listener(b'"type":"stream_end"', b'"type":"text_delta"') for _ in range(sessions)]
    for some in grouped(sessions):
        for number in some:
            local = local_socket.connected(server.home, attach.ATTACH_SOCKET, PATIENCE_SECONDS)
            await asyncio.get_running_loop().create_unix_connection(partial(_own, listeners[number]), sock=local)
            agent = agents[number % len(agents)]
            listeners[number].transport.write(attach.encode(AttachHeader("jsonstream", agent)) + said)
        await asyncio.gather(*(listeners[number].connected for number in some))
    return listeners


async def tryll(server: Server, sessions: int, agents: Agents = NAMES, text: str = "Go.") -> list[Listener]:
    """So many clients of the Tryll wire, each with a graph that talks to an agent."""
    listeners: list[Listener] = [GameListener(agents[number % len(agents)], text) for number in range(sessions)]
    for some in grouped(sessions):
        for number in some:
            await _connected(server.tryll, listeners[number])
        await asyncio.gather(*(listeners[number].connected for number in some))
    return listeners


Wire = Callable[..., Coroutine[Any, Any, list[Listener]]]

WIRES: dict[str, Wire] = {"HTTP": http, "JSON stream": jsonstream, "Tryll": tryll}


def grouped(number: int) -> Iterator[range]:
    """The first numbers, as many at a time as may connect at once."""
    return (range(start, min(start + CONNECTING, number)) for start in range(0, number, CONNECTING))


async def heard(listeners: list[Listener], words: int = WORDS) -> list[Listener]:
    """Wait for all answers, see that they are whole, and hang up."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.gather(*(each.over for each in listeners))
        for each in listeners:
            if each.words < words:
                raise AssertionError(f"an answer has {each.words} words of {words}")
    finally:
        for each in listeners:
            each.transport.close()
    return listeners


async def _connected(port: int, listener: Listener) -> None:
    await asyncio.get_running_loop().create_connection(partial(_own, listener), "127.0.0.1", port)


def _own(listener: Listener) -> Listener:
    return listener
