"""A real exchange with 200 sessions on all its wires that is killed with -9 again and again in the middle of its work.

Whatever a client was told is still so after the restart: each message that was taken in has its turn, which begins and
ends once, events keep their numbers, approvals have one answer, and a command that was approved ran once. No program of
an agent is left running.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.base.processes import marked
from tests.support.patience import PATIENCE_SECONDS
from tests.support.ports import free_port
from tests.support.provider import Reply, Request, StubProvider
from tests.support.provider_streams import anthropic_sse, anthropic_text, anthropic_tool_calls
from tests.support.tryll_served import echo as graph
from trunkline.base import attach, shapes
from trunkline.base.attach import AttachHeader, FrameReader
from trunkline.core.events import Envelope, Steered, TurnEnded, TurnStarted
from trunkline.exchange.api.event_form import NAMES
from trunkline.store.files import FileStore
from trunkline.wires.agentproc.messages import TurnRequest
from trunkline.wires.tryll.drive import Tryll
from trunkline.wires.tryll.errors import TryllError

pytestmark = [
    pytest.mark.process,
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.skipif(sys.platform != "linux", reason="processes are found through /proc"),
]

SEED = 20261116
#: How many of each agent's: 200 in all. Those of programs have a process each.
SESSIONS = {"plain": 120, "asking": 40, "coder": 20, "program": 10, "bridged": 10}
#: The exchange is killed when so many things were acknowledged since it was ready: at once, soon, and under full load.
KILLED_AFTER = (250, 0, 40, 120, 1)
WATCHED = 20
#: Messages that are on their way at one time.
TALKERS = 12
#: What a start may cost: two seconds of a processor. The machine may have others to serve, and that takes longer.
READY_CPU_SECONDS = 2.0
MARK = "EXCHANGE_KILLED_MARK"

FILE = """\
[exchange]
listen = "127.0.0.1:0"
home = "home"
[agents.plain]
agent = "scripted:plain.yaml"
workspace = "."
[agents.asking]
agent = "scripted:asking.yaml"
workspace = "."
[agents.coder]
agent = "coder"
workspace = "."
provider = "anthropic"
model = "stub"
base_url = "{url}"
allow = []
[agents.program]
agent = "jsonstream:{python} -S -E {place}/program.py"
workspace = "."
[agents.bridged]
agent = "agentproc:{place}/bridged.yaml"
workspace = "."
[wires.tryll]
listen = "127.0.0.1:{port}"
agents = ["plain"]
"""
PLAIN = """\
turns:
  - steps:
      - text: ["Some ", "words ", "and "]
      - text: ["some ", "more."]
"""
ASKING = """\
turns:
  - steps:
      - tool: {name: Bash, args: {command: "make"}, description: "make it", output: "made"}
      - text: "done"
"""
#: Speaks the JSON stream, and does not mind that nobody is there any more.
PROGRAM = """\
import json, signal, sys
def say(**line):
    sys.stdout.write(json.dumps(line) + "\\n")
    sys.stdout.flush()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
say(type="ready", version="0.1.0", capabilities={})
for line in sys.stdin:
    said = json.loads(line)
    if said["type"] == "message":
        say(type="stream_start", msg_id=said["msg_id"])
        say(type="text_delta", text="from a program", msg_id=said["msg_id"])
        say(type="stream_end", msg_id=said["msg_id"])
while True:
    signal.pause()
"""
BRIDGED = """\
name: bridged
command: {python}
args: ["{place}/bridged.py"]
stdin: message
"""
BRIDGED_PROGRAM = "import sys; sys.stdin.read(); print('from a bridge')"


class Ledger:
    """What clients were told."""

    def __init__(self) -> None:
        self.taken: dict[tuple[str, str], int] = {}
        """The turns of messages that were taken in, by session and id; 0: it was not told which."""
        self.unsure: dict[tuple[str, str], str] = {}
        """Messages of which nobody knows whether they were taken in, with their texts."""
        self.seen: dict[str, dict[int, tuple[str, int]]] = defaultdict(dict)
        """What watchers were shown, by session and number: the kind, and the turn."""
        self.repeated: list[tuple[str, int]] = []
        """Events that a watcher was shown twice."""
        self.won: Counter[str] = Counter()
        """How often an answer to an approval was taken."""
        self.answered_by_text: Counter[tuple[str, str]] = Counter()
        self.answered_by_game = 0
        self.acknowledged = 0
        self._news = asyncio.Event()
        self.ready: list[tuple[float, float]] = []
        """For each start the seconds until it was ready, and those of the processor."""

    def acknowledge(self) -> None:
        self.acknowledged += 1
        self._news.set()

    async def reached(self, acknowledged: int) -> None:
        """Wait until so much was acknowledged."""
        while self.acknowledged < acknowledged:
            self._news.clear()
            await self._news.wait()


class Exchange:
    """One life of the process."""

    def __init__(self, place: Path, port: int, ledger: Ledger, pid: int) -> None:
        self.place = place
        self.port = port
        self.ledger = ledger
        self.pid = pid

    def client(self) -> httpx.AsyncClient:
        transport = httpx.AsyncHTTPTransport(uds=str(self.place / "home" / "exchange.sock"))
        return httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=PATIENCE_SECONDS)


@asynccontextmanager
async def running(place: Path, port: int, ledger: Ledger, mark: str) -> AsyncIterator[Exchange]:
    """From its start, when it is ready, to its `kill -9`."""
    begun = time.monotonic()
    own = {"ANTHROPIC_API_KEY": "sk-of-the-stub", "TRUNKLINE_HOME": str(place / "state"), MARK: mark}
    with open(place / "log.txt", "ab") as log:  # noqa: ASYNC230  (nobody else waits)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "trunkline", "up", "--config", "trunkline.toml"),
            cwd=place,
            env=os.environ | own,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    exchange = Exchange(place, port, ledger, process.pid)
    try:
        async with exchange.client() as client:
            await eventually(lambda: client.get("/readyz"), lambda answer: answer.status_code == 200)
        ledger.ready.append((time.monotonic() - begun, cpu_seconds(process.pid)))
        yield exchange
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        await process.wait()


async def eventually(ask: Callable[[], Awaitable[Any]], holds: Callable[[Any], bool]) -> Any:
    """Ask until the answer is as wanted."""
    async with asyncio.timeout(2 * PATIENCE_SECONDS):
        while True:
            with suppress(httpx.TransportError):
                if holds(answer := await ask()):
                    return answer
            await asyncio.sleep(0.02)


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# The clients. Each goes on until the exchange is gone.


async def say(client: httpx.AsyncClient, ledger: Ledger, session: str, id: str, text: str) -> None:
    ledger.unsure[session, id] = text
    answer = await client.post(f"/api/sessions/{session}/messages", json={"text": text, "msg_id": id})
    assert answer.status_code == 202, answer.text
    turn = answer.json()["turn"]
    assert ledger.taken.setdefault((session, id), turn) in (0, turn)
    ledger.taken[session, id] = turn
    ledger.unsure.pop((session, id), None)
    ledger.acknowledge()


async def talk(exchange: Exchange, sessions: list[str], rng: random.Random) -> None:
    """Messages over HTTP; also those again of which nobody knows what became of them."""
    async with exchange.client() as client:
        while True:
            again = [known for known in exchange.ledger.unsure if known[0] in sessions]
            if again and rng.random() < 0.5:
                session, id = rng.choice(again)
                await say(client, exchange.ledger, session, id, exchange.ledger.unsure[session, id])
            else:
                id = uuid4().hex
                await say(client, exchange.ledger, rng.choice(sessions), id, f"token-{id}")


async def watch(exchange: Exchange, session: str) -> None:
    """Its events as they come, after the last one that was seen."""
    seen = exchange.ledger.seen[session]
    since = max(seen, default=0)
    async with exchange.client() as client:
        url = f"/api/sessions/{session}/events?since={since}"
        async with client.stream("GET", url, headers={"Accept": "text/event-stream"}) as events:
            kind = ""
            async for line in events.aiter_lines():
                if line.startswith("event: "):
                    kind = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    data = json.loads(line.removeprefix("data: "))
                    assert kind != "gap", data
                    if data["seq"] in seen:
                        exchange.ledger.repeated.append((session, data["seq"]))
                    seen[data["seq"]] = (kind, data["turn"])


async def approve(exchange: Exchange) -> None:
    """Everything that is asked, as fast as others do."""
    async with exchange.client() as client:
        while True:
            asked = (await client.get("/api/approvals?state=pending")).json()["approvals"]
            for approval in asked:
                answer = await client.post(f"/api/approvals/{approval['id']}", json={"decision": "approve"})
                assert answer.status_code in (200, 409), answer.text
                exchange.ledger.won[approval["id"]] += answer.status_code == 200
            await asyncio.sleep(0.05)


class Attached:
    """A program at the exchange's socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def send(self, **command: Any) -> None:
        self._writer.write(json.dumps(command).encode() + b"\n")

    async def lines(self) -> AsyncIterator[dict[str, Any]]:
        frames, rest = FrameReader(), b""
        while data := await self._reader.read(65536):
            *lines, rest = (rest + frames.feed(data)).split(b"\n")
            for line in lines:
                yield json.loads(line)
        if frames.finish() is None:
            raise ConnectionResetError("it broke off")


@asynccontextmanager
async def attached(exchange: Exchange, header: AttachHeader) -> AsyncIterator[Attached]:
    reader, writer = await asyncio.open_unix_connection(str(exchange.place / "home" / attach.ATTACH_SOCKET))
    try:
        writer.write(attach.encode(header))
        if not (line := await reader.readline()):
            raise ConnectionResetError("it broke off")
        answer = attach.decode_answer(line)
        assert answer.error is None, answer
        yield Attached(reader, writer)
    finally:
        writer.close()


async def host(exchange: Exchange, session: str) -> None:
    """One message after the other on the JSON stream. Whoever sees its turn begin knows that it was taken in."""
    ledger = exchange.ledger
    async with attached(exchange, AttachHeader("jsonstream", resume=session)) as program:
        lines = program.lines()
        while (await anext(lines))["type"] != "ready":
            pass
        while True:
            again = [id for known, id in ledger.unsure if known == session]
            id = again[0] if again else uuid4().hex
            text = ledger.unsure.setdefault((session, id), f"token-{id}")
            program.send(type="message", msg_id=id, input=text)
            async for line in lines:
                if line["type"] == "stream_start" and line["msg_id"] == id:
                    ledger.taken.setdefault((session, id), 0)
                    ledger.unsure.pop((session, id), None)
                    ledger.acknowledge()
                elif line["type"] == "stream_end" and line["msg_id"] == id:
                    break


async def bridge(exchange: Exchange, session: str) -> None:
    """One process of a bridge after the other. They have no ids of messages: what is answered counts."""
    while True:
        text = f"token-{uuid4().hex}"
        turn = shapes.encode(TurnRequest(text, session_id=session))
        async with attached(exchange, AttachHeader("agentproc", resume=session, dialect="0.4", turn=turn)) as program:
            async for _ in program.lines():
                pass
        exchange.ledger.answered_by_text[session, text] += 1
        exchange.ledger.acknowledge()


async def play(exchange: Exchange) -> None:
    """A game that talks to an agent of the exchange."""
    async with Tryll("127.0.0.1", exchange.port) as game:
        agent = await game.create_agent(graph(), default_model="agent:plain")
        while True:
            assert "more." in (await agent.ask("Anybody?")).text
            exchange.ledger.answered_by_game += 1
            exchange.ledger.acknowledge()


#: How clients hear that the exchange is gone.
GONE = (httpx.TransportError, ConnectionError, FileNotFoundError, asyncio.IncompleteReadError, TryllError)


async def until_gone(client: Awaitable[None]) -> None:
    with suppress(*GONE):
        await client


async def under_load(exchange: Exchange, sessions: dict[str, list[str]], acknowledged: int, rng: random.Random) -> None:
    """All clients at once, until so much more was acknowledged; then the exchange is killed, and they hear of it."""
    ledger = exchange.ledger
    goal = ledger.acknowledged + acknowledged
    everywhere = [session for each in sessions.values() for session in each[2:]]
    clients = [
        *(talk(exchange, everywhere[number::TALKERS], random.Random(rng.random())) for number in range(TALKERS)),
        *(watch(exchange, session) for session in everywhere[:: len(everywhere) // WATCHED]),
        *(host(exchange, sessions[agent][0]) for agent in sessions),
        *(bridge(exchange, sessions[agent][1]) for agent in sessions),
        *(play(exchange) for _ in range(2)),
        *(approve(exchange) for _ in range(2)),
    ]
    tasks = [asyncio.create_task(until_gone(client)) for client in clients]
    try:
        async with asyncio.timeout(2 * PATIENCE_SECONDS):
            await ledger.reached(goal)
        os.kill(exchange.pid, signal.SIGKILL)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def settled(exchange: Exchange, sessions: list[str]) -> None:
    """Everything that is open comes to its end: what nobody is sure of is sent once more, what is asked is answered."""
    ledger = exchange.ledger
    approving = asyncio.create_task(approve(exchange))
    try:
        async with exchange.client() as client:
            for (session, id), text in list(ledger.unsure.items()):
                await say(client, ledger, session, id, text)
            for session in sessions:
                # Nobody wakes it for this: what was cut off has its end by itself.
                store = FileStore(str(exchange.place / "home" / "sessions"))
                await eventually(partial(asyncio.to_thread, open_turns, store, session), lambda found: not found)
                ask = partial(client.get, f"/api/sessions/{session}")
                await eventually(ask, lambda answer: answer.json()["state"] in ("idle", "asleep"))
    finally:
        approving.cancel()
        await asyncio.wait({approving})


def open_turns(store: FileStore, session: str) -> set[int]:
    found: set[int] = set()
    for item in store.peek(session).records:
        if isinstance(item, Envelope) and isinstance(item.event, TurnStarted):
            found.add(item.turn)
        elif isinstance(item, Envelope) and isinstance(item.event, TurnEnded):
            found.discard(item.turn)
    return found


async def make_sessions(exchange: Exchange) -> dict[str, list[str]]:
    made: dict[str, list[str]] = {}
    async with exchange.client() as client:
        for agent, count in SESSIONS.items():
            made[agent] = [f"{agent}-{number}" for number in range(count)]
            for id in made[agent]:
                answer = await client.post("/api/sessions", json={"agent": agent, "session_id": id})
                assert answer.status_code == 200, answer.text
    return made


def model(request: Request) -> Reply:
    """Has each message's token written by a command, which a person must allow."""
    last = request.json["messages"][-1]["content"]
    parts = [last] if isinstance(last, str) else [part.get("text", "") for part in last if part["type"] == "text"]
    if not isinstance(last, str) and any(part["type"] == "tool_result" for part in last):
        return Reply([anthropic_sse(anthropic_text("Written."))])
    token = next(word for part in parts for word in part.split() if word.startswith("token-"))
    command = {"command": f"echo {token} >> written.txt", "description": "Write"}
    return Reply([anthropic_sse(anthropic_tool_calls([("Bash", command)]))])


async def test_an_exchange_killed_under_load_keeps_all_it_has_promised(tmp_path: Path) -> None:
    mark, ledger, rng = uuid4().hex, Ledger(), random.Random(SEED)
    (tmp_path / "plain.yaml").write_text(PLAIN)
    (tmp_path / "asking.yaml").write_text(ASKING)
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "bridged.yaml").write_text(BRIDGED.format(python=sys.executable, place=tmp_path))
    (tmp_path / "bridged.py").write_text(BRIDGED_PROGRAM)
    port = free_port()
    async with StubProvider(model) as stub:
        file = FILE.format(url=stub.url, python=sys.executable, place=tmp_path, port=port)
        (tmp_path / "trunkline.toml").write_text(file)
        async with running(tmp_path, port, ledger, mark) as exchange:
            sessions = await make_sessions(exchange)
            await under_load(exchange, sessions, KILLED_AFTER[0], rng)
        for acknowledged in KILLED_AFTER[1:]:
            async with running(tmp_path, port, ledger, mark) as exchange:
                await under_load(exchange, sessions, acknowledged, rng)
        async with running(tmp_path, port, ledger, mark) as exchange:
            games = await games_of(exchange)
            await settled(exchange, [*games, *(session for each in sessions.values() for session in each)])
            await check_approvals(exchange)
    check_told(tmp_path, ledger, sessions, games)
    check_commands(tmp_path, sessions)
    assert max(cpu for _, cpu in ledger.ready) < READY_CPU_SECONDS, ledger.ready
    async with asyncio.timeout(PATIENCE_SECONDS):
        while marked(mark):  # noqa: ASYNC110  (nobody tells)
            await asyncio.sleep(0.05)


async def games_of(exchange: Exchange) -> list[str]:
    """Their sessions."""
    async with exchange.client() as client:
        listed = (await client.get("/api/sessions?agent=plain&limit=1000")).json()["sessions"]
    return [row["id"] for row in listed if row["by"] == "tryll"]


async def check_approvals(exchange: Exchange) -> None:
    async with exchange.client() as client:
        rows = (await client.get("/api/approvals")).json()["approvals"]
    calls = Counter((row["session"], row["call_id"]) for row in rows)
    assert calls
    assert set(calls.values()) == {1}, "a call was asked about twice"
    won = exchange.ledger.won
    assert max(won.values()) == 1, "an approval was answered twice"
    states = {row["id"]: row["state"] for row in rows}
    assert "pending" not in states.values()
    assert {states[id] for id, count in won.items() if count and id in states} == {"approved"}


def check_told(place: Path, ledger: Ledger, sessions: dict[str, list[str]], games: list[str]) -> None:
    """Hold the logs against what clients were told."""
    store = FileStore(str(place / "home" / "sessions"))
    answered = 0
    assert not ledger.unsure
    assert not ledger.repeated
    for session in [*games, *(session for each in sessions.values() for session in each)]:
        events = [item for item in store.peek(session).records if isinstance(item, Envelope)]
        numbers = [item.seq for item in events]
        assert numbers == list(range(1, len(events) + 1)), f"{session}: a number is missing, or there twice"
        begun = Counter(item.turn for item in events if isinstance(item.event, TurnStarted))
        ended = Counter(item.turn for item in events if isinstance(item.event, TurnEnded))
        assert begun == ended, f"{session}: a turn without its end"
        assert set(begun.values()) <= {1}, f"{session}: a turn that began twice"
        starts = [(item.event.message, item.turn) for item in events if isinstance(item.event, TurnStarted | Steered)]
        turns = {message.id: turn for message, turn in starts}
        assert session in games or len(turns) == len(starts), f"{session}: a message that was answered twice"
        for (where, id), turn in ledger.taken.items():
            if where == session:
                assert id in turns, f"{session}: {id} was lost"
                assert turn in (0, turns[id]), f"{session}: {id} was promised turn {turn}, and got {turns[id]}"
        texts = Counter(message.text for message, _ in starts)
        for (where, text), count in ledger.answered_by_text.items():
            assert where != session or texts[text] == count
        answered += sum(
            item.event.outcome == "success" for item in events if session in games and isinstance(item.event, TurnEnded)
        )
        if seen := ledger.seen.get(session):
            public = {
                item.seq: (NAMES[type(item.event)], item.turn)
                for item in events
                if not item.event.private and min(seen) <= item.seq <= max(seen)
            }
            assert seen == public, f"{session}: what a watcher saw is not what happened"
    assert answered >= ledger.answered_by_game > 0


def check_commands(place: Path, sessions: dict[str, list[str]]) -> None:
    written = Counter((place / "written.txt").read_text().split())
    assert set(written.values()) == {1}, "a command ran twice"
    assert len(written) > len(sessions["coder"]) // 2
