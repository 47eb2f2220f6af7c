"""The servers of the exchange's benchmark: an exchange on its wires, and the same sessions on the same
wires without it.

    python bench/_exchange_server.py exchange|plain HOME

Writes a line of JSON with its ports, and serves until its standard input ends. In both the agents `a` to
`d` play a script that says words as fast as they are taken, and `clock` says the time every few milliseconds; sessions
have a log in a file and are held free of secrets, as those of every command. What `plain` lacks is what the exchange
adds: people and tokens, rows (sessions, messages, approvals, budgets, who came and left), and sessions that
others can join.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

# Run as a script, Python looks for modules beside it, and not where `bench` is.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench._exchange_script import CLOCK, NAMES, TOKEN, WORDS

from trunkline.agents import registry
from trunkline.agents.graph.agent_models import AgentModels
from trunkline.agents.graph.hosting import LocalGraphHost
from trunkline.agents.graph.pool import ModelPool
from trunkline.base import asgi, attach, local_socket
from trunkline.base.attach import AttachAnswer, AttachEnding
from trunkline.base.redact import Redactor
from trunkline.core.agent import Agent, Capabilities, Change, Decision, OpenRequest
from trunkline.core.approvals import Policy
from trunkline.core.events import Envelope, Event, TextDelta, TurnEnded, UserMessage
from trunkline.core.ids import new_id
from trunkline.core.redaction import Redaction
from trunkline.core.session import Session
from trunkline.exchange.api.app import application
from trunkline.exchange.api.event_form import encode
from trunkline.exchange.attach import attach_socket
from trunkline.exchange.exchange import Exchange, by_registry
from trunkline.exchange.lines import tryll
from trunkline.exchange.lines.connection import LocalConnection
from trunkline.exchange.settings import AgentSettings, ExchangeSettings, PersonSettings, WireSettings
from trunkline.store.files import FileStore
from trunkline.wires.jsonstream.serve import JsonStreamServer
from trunkline.wires.stdio_host import LAST_ANSWER_SECONDS
from trunkline.wires.tryll.serve import TryllServer

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


class Clock:
    """An agent and its conversations: says the time, the message's `WORDS SECONDS` of them."""

    name = CLOCK
    capabilities = Capabilities()
    session_id: str | None = None

    async def open(self, request: OpenRequest) -> Clock:
        return self

    async def turn(self, message: UserMessage) -> AsyncIterator[Event]:
        words, seconds = message.text.split()
        for _ in range(int(words)):
            await asyncio.sleep(float(seconds))
            yield TextDelta(f"@{time.perf_counter_ns()}@ ")
        yield TurnEnded("success")

    async def decide(self, call_id: str, decision: Decision) -> None:
        """Nothing is ever asked."""

    async def configure(self, change: Change) -> None:
        """Nothing can be changed."""

    async def cancel(self) -> None:
        """A benchmark is never stopped."""

    async def close(self) -> None:
        """There is nothing to let go of."""


def script(home: Path) -> str:
    """The name of an agent that says so many words."""
    path = home / "script.yaml"
    path.write_text("turns:\n- steps:\n" + "".join(f"  - text: 'word {number} '\n" for number in range(WORDS)))
    return f"scripted:{path}"


async def made(name: str, options: dict[str, Any]) -> Agent:
    return Clock() if name == CLOCK else await by_registry(name, options)


def settings(home: Path) -> ExchangeSettings:
    """An exchange with these agents, and somebody who may do everything."""
    kinds = {**dict.fromkeys(NAMES, script(home)), CLOCK: CLOCK}
    return ExchangeSettings(
        str(home / "trunkline.toml"),
        str(home),
        agents={name: AgentSettings(name, kind, str(home)) for name, kind in kinds.items()},
        people={"ana": PersonSettings("ana", hashlib.sha256(TOKEN.encode()).hexdigest(), "admin")},
    )


@asynccontextmanager
async def exchange(home: Path) -> AsyncIterator[dict[str, Any]]:
    """An exchange with all that `trunkline up --config` runs for these wires."""
    async with Exchange.opened(settings(home), make=made) as found, attach_socket(found), AsyncExitStack() as stack:
        app = application(found)
        port = await stack.enter_async_context(listening(app, app.state.streams.close))
        service = tryll.service(found, WireSettings(tryll.NAME, None, {"listen": "127.0.0.1:0"}))
        stop, reachable = asyncio.Event(), asyncio.Event()
        serving = asyncio.create_task(service.run(stop, reachable.set))
        await reachable.wait()
        try:
            yield {
                "http": port,
                "tryll": int(service.where.split(":")[1]),
            }
        finally:
            stop.set()
            await serving


@asynccontextmanager
async def listening(app: ASGIApp, stopping: Any = lambda: None) -> AsyncIterator[int]:
    stop = asyncio.Event()
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    begun = lambda _, found: port.set_result(found)  # noqa: E731
    serving = asyncio.create_task(asgi.serve(app, "127.0.0.1", 0, stop, begun, stopping=stopping))
    try:
        yield await port
    finally:
        stop.set()
        await serving


# The same without an exchange.


class Sessions:
    """Agents and their sessions, and nothing else. Also the `SharedAgents` of a Tryll server."""

    person = "tryll"
    serving = False
    names = (*NAMES, CLOCK)

    def __init__(self, home: Path) -> None:
        self._home = str(home)
        self._store = FileStore(home / "sessions")
        self._agents: dict[str, Agent] = dict.fromkeys(NAMES, registry.make(script(home), {})) | {CLOCK: Clock()}
        self._secrets = Redactor.from_environ(os.environ)
        self.open_now: dict[str, Session] = {}

    async def open(self, name: str, instructions: str | None = None, id: str | None = None) -> Session:
        log = self._store.create(id or new_id(), self._home, name)
        session = await Session.open(
            self._agents[name], log, Policy(), workspace=self._home, redact=Redaction(self._secrets)
        )
        self.open_now[session.id] = session
        return session

    async def submit(self, session: Session, message: UserMessage) -> int:
        """Have it answered."""
        return session.submit(message)

    def stop(self, session: Session, turn: int) -> None:
        session.stop(self.person, turn)

    async def leave(self, session: Session) -> None:
        """It stays, as in an exchange."""

    async def close(self) -> None:
        await asyncio.gather(*(session.close() for session in self.open_now.values()))


class Watching:
    """A sink whose events are sent as they come, those of one tick together."""

    congested = False

    def __init__(self) -> None:
        self.held: list[bytes] = []
        self.news = asyncio.Event()

    def show(self, envelopes: Sequence[Envelope]) -> None:
        self.held += map(encode, envelopes)
        self.news.set()

    async def drain(self) -> None:
        """Nobody waits for a reader."""


def plain_http(sessions: Sessions) -> ASGIApp:
    """The least that serves those requests: no tokens, no rules, no limits."""

    async def handle(scope: Scope, receive: Receive, send: Send) -> None:
        answer: dict[str, Any]
        match scope["path"].split("/")[3:], scope["method"]:
            case [id, "events"], _:
                await watch(sessions.open_now[id], send)
                return
            case [id, "messages"], _:
                body = json.loads(await whole(receive))
                status, answer = 202, {"turn": sessions.open_now[id].submit(UserMessage(body["text"]))}
            case _:
                body = json.loads(await whole(receive))
                session = await sessions.open(body["agent"], id=body["session_id"])
                status, answer = 200, {"id": session.id, "agent": body["agent"]}
        data = json.dumps(answer).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(data))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": data})

    async def watch(session: Session, send: Send) -> None:
        watching = Watching()
        session.attach(watching)
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b": watching\n\n", "more_body": True})
        # A benchmark's readers stay until the server ends.
        while True:
            await watching.news.wait()
            watching.news.clear()
            held, watching.held = watching.held, []
            await send({"type": "http.response.body", "body": b"".join(held), "more_body": True})

    async def whole(receive: Receive) -> bytes:
        data, more = b"", True
        while more:
            message = await receive()
            data, more = data + message["body"], message["more_body"]
        return data

    return handle


@asynccontextmanager
async def plain(home: Path) -> AsyncIterator[dict[str, Any]]:
    """Sessions, and one server for each wire."""
    sessions = Sessions(home)

    async def attached(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = LocalConnection(reader, writer)
        header = attach.decode_header(await connection.header())
        session = await sessions.open(header.agent or "")
        connection.accept(AttachAnswer(session.id, header.agent))
        server = JsonStreamServer(session, connection)
        server.greet()
        with suppress(ConnectionError):
            async for data in connection.read():
                server.feed(data)
        server.end()
        await server.finish(LAST_ANSWER_SECONDS)
        await server.close()
        connection.end(AttachEnding(0))
        await connection.close()

    graphs = LocalGraphHost(AgentModels(ModelPool(), {}, elsewhere=sessions))
    games = TryllServer(graphs)
    _, port = await games.listen("127.0.0.1", 0)
    hosts = await asyncio.start_unix_server(
        attached, sock=local_socket.listening(str(home), attach.ATTACH_SOCKET), limit=attach.MAX_HEADER
    )
    try:
        async with listening(plain_http(sessions)) as http:
            yield {"http": http, "tryll": port}
    finally:
        hosts.close()
        await games.close()
        await graphs.close()
        await sessions.close()


async def serve(kind: str, home: Path) -> None:
    async with {"exchange": exchange, "plain": plain}[kind](home) as reached:
        print(json.dumps(reached), flush=True)
        await asyncio.to_thread(sys.stdin.read)
        # Nobody waits for the ends of a thousand sessions.
        os._exit(0)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], Path(sys.argv[2])))
