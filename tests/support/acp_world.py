"""Sessions in memory behind the agent end of ACP, and clients that speak it in raw messages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.fake_agent import FakeAgent
from trunkline.base.redact import Redactor
from trunkline.base.vocabulary import Mode
from trunkline.core import faults
from trunkline.core.agent import Capabilities, Change, Decision
from trunkline.core.approvals import Policy
from trunkline.core.events import Envelope, Gap, UserMessage
from trunkline.core.ids import new_id
from trunkline.core.keeper import LISTED, KnownSession, OfferedAgent, Removed, When
from trunkline.core.log import MemoryLog
from trunkline.core.redaction import Redaction
from trunkline.core.session import Session
from trunkline.wires.acp.serve import AcpServer


class MemorySeat:
    """A place in a session of a `MemoryKeeper`."""

    def __init__(self, keeper: MemoryKeeper, session: Session, known: KnownSession, client: str) -> None:
        self.session = session
        self.agent = known.agent
        self.workspace = known.workspace
        self.client = client
        self.may_answer = True
        self.left = False
        self._keeper = keeper

    async def submit(self, message: UserMessage, when: When = "queue") -> int:
        if self._keeper.refusal is not None:
            raise self._keeper.refusal
        return self.session.submit(message)

    def answer(self, call_id: str, decision: Decision) -> None:
        self.session.answer(call_id, decision, self.client)

    def stop(self, turn: int | None = None) -> None:
        self.session.stop(self.client, turn)

    def set_mode(self, mode: Mode) -> None:
        self.session.set_mode(mode)

    async def configure(self, change: Change) -> None:
        await self.session.configure(change)

    async def keep_file(self, name: str, data: bytes) -> str:
        path = self._keeper.folder / f"{len(self._keeper.kept)}-{name}"
        path.write_bytes(data)
        self._keeper.kept.append(path)
        return str(path)

    async def leave(self) -> None:
        self.left = True


class MemoryKeeper:
    """Keeps sessions with fake agents, each with the client's name of the server that opened it."""

    def __init__(self, folder: Path, *, shared: bool = False) -> None:
        self.folder = folder
        self.is_shared = shared
        self.kept: list[Path] = []
        self.refusal: faults.Fault | None = None
        """What `submit` raises, if anything."""
        self.failing: faults.Fault | None = None
        """What `open` raises, if anything."""
        self.capabilities: Capabilities | None = None
        self.mode: Mode = "default"
        self.secrets = Redactor()
        self.may_ask = True
        self.gate = asyncio.Event()
        """Who joins a session waits until it is set."""
        self.gate.set()
        self.agents_made: list[FakeAgent] = []
        self.held: dict[str, tuple[Session, KnownSession, MemoryLog]] = {}
        self.seats: list[MemorySeat] = []
        self.names = iter(f"client-{number}" for number in range(1, 100))
        self._removed: list[tuple[str, Removed]] = []

    def check_may_ask(self) -> None:
        if not self.may_ask:
            raise faults.Forbidden("It needs the role `talker`.")

    async def agents(self) -> Sequence[OfferedAgent]:
        return [OfferedAgent("fake")]

    async def capabilities_of(self, agent: str) -> Capabilities | None:
        return self.capabilities if agent == "fake" else None

    async def open(
        self,
        agent: str,
        session_id: str | None = None,
        *,
        workspace: str | None = None,
        passing: bool = False,
        removed: Removed = lambda: None,
    ) -> MemorySeat:
        if self.failing is not None:
            raise self.failing
        log = MemoryLog(session_id or new_id())
        return await self._hold(log, agent, workspace or str(self.folder), removed, resume=False)

    async def join(self, session_id: str, *, removed: Removed = lambda: None) -> MemorySeat:
        session, known, _ = self.held[session_id]
        await self.gate.wait()
        return self._seat(session, known, removed)

    async def known(self, session_id: str) -> KnownSession | None:
        return self.held[session_id][1] if session_id in self.held else None

    async def sessions(
        self, agent: str | None = None, *, limit: int = LISTED, before: str | None = None
    ) -> Sequence[KnownSession]:
        found = [known for _, known, _ in reversed(self.held.values())]
        if before is not None:
            found = found[[each.id for each in found].index(before) + 1 :]
        return found[:limit]

    async def read(self, session_id: str) -> Iterator[Envelope | Gap]:
        return self.held[session_id][2].read()

    async def fork(self, session_id: str, at: int | None = None, *, to_ask: bool = False) -> KnownSession:
        _, known, old = self.held[session_id]
        log = MemoryLog(new_id())
        for item in old.read():
            assert isinstance(item, Envelope)
            log.append(item.replace(session=log.session))
        seat = await self._hold(log, known.agent, known.workspace, lambda: None, resume=True)
        self.seats.remove(seat)
        return self.held[log.session][1]

    async def remove(self, session_id: str) -> None:
        session, _, _ = self.held.pop(session_id)
        for removed_id, removed in self._removed:
            if removed_id == session_id:
                removed()
        await session.close()

    async def close(self) -> None:
        for session, _, _ in self.held.values():
            await session.close()

    async def _hold(self, log: MemoryLog, agent: str, workspace: str, removed: Removed, *, resume: bool) -> MemorySeat:
        fake = FakeAgent()
        if self.capabilities is not None:
            fake.capabilities = self.capabilities
        self.agents_made.append(fake)
        redact = Redaction(self.secrets)
        session = await Session.open(fake, log, Policy(self.mode), resume=resume, workspace=workspace, redact=redact)
        number = 1_700_000_000_000 + len(self.held)
        known = KnownSession(session.id, agent, workspace, number, number, f"session {len(self.held)}")
        self.held[session.id] = (session, known, log)
        return self._seat(session, known, removed)

    def _seat(self, session: Session, known: KnownSession, removed: Removed) -> MemorySeat:
        seat = MemorySeat(self, session, known, next(self.names))
        self._removed.append((session.id, removed))
        self.seats.append(seat)
        return seat


class AcpClient:
    """The other end of an `AcpServer`: an output for it, and a way to send it messages."""

    def __init__(self, make: Callable[[AcpClient], AcpServer]) -> None:
        self.lines: list[dict[str, Any]] = []
        self.congested = False
        self._room = asyncio.Event()
        self._held: list[bytes] = []
        self._next = 0
        self._news = asyncio.Event()
        self.server = make(self)

    # The output of the server.

    def write(self, data: bytes) -> None:
        assert data.endswith(b"\n")
        assert data.count(b"\n") == 1
        self._held.append(data)

    def flush(self) -> None:
        self.lines += [json.loads(line) for line in self._held]
        self._held.clear()
        self._news.set()

    async def drain(self) -> None:
        await self._room.wait()

    def fill(self) -> None:
        """Read no more."""
        self.congested = True
        self._room.clear()

    def empty(self) -> None:
        """Read again."""
        self.congested = False
        self._room.set()

    # What the tests do.

    def send(self, **members: Any) -> None:
        self.server.feed(json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n")

    def request(self, method: str, **params: Any) -> int:
        """Send a request; gives its id."""
        self._next += 1
        self.send(id=self._next, method=method, params=params)
        return self._next

    async def answer(self, id: int) -> dict[str, Any]:
        """The answer to a request, waited for."""
        while True:
            for line in self.lines:
                if line.get("id") == id and "method" not in line:
                    return line
            self._news.clear()
            await asyncio.wait_for(self._news.wait(), 5)

    async def ask(self, method: str, **params: Any) -> Any:
        """Send a request; gives its result."""
        answer = await self.answer(self.request(method, **params))
        assert "error" not in answer, answer
        return answer["result"]

    async def refused(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request; gives its error."""
        answer = await self.answer(self.request(method, **params))
        assert "result" not in answer, answer
        error: dict[str, Any] = answer["error"]
        return error

    def prompt(self, session: str, text: str = "hello") -> int:
        return self.request("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    async def settle(self) -> None:
        """Let everything happen that happens at once."""
        for _ in range(60):
            await asyncio.sleep(0)

    async def told(self, text: str) -> None:
        """Wait until a line has come that holds this."""
        while not any(text in str(line) for line in self.lines):
            self._news.clear()
            await asyncio.wait_for(self._news.wait(), 5)

    def take(self) -> list[dict[str, Any]]:
        """The lines since the last time."""
        taken, self.lines = self.lines, []
        return taken

    def updates(self) -> list[dict[str, Any]]:
        """The updates since the last time; the other lines are kept."""
        taken = self.take()
        self.lines = [line for line in taken if line.get("method") != "session/update"]
        return [line["params"]["update"] for line in taken if line.get("method") == "session/update"]

    def questions(self) -> list[dict[str, Any]]:
        """The questions so far."""
        return [line for line in self.lines if line.get("method") == "session/request_permission"]

    def choose(self, question: dict[str, Any], option: str) -> None:
        """Answer a question."""
        self.send(id=question["id"], result={"outcome": {"outcome": "selected", "optionId": option}})


class AcpWorld:
    """A keeper, and clients of its sessions."""

    def __init__(self, keeper: MemoryKeeper) -> None:
        self.keeper = keeper
        self.clients: list[AcpClient] = []
        self.client = self.connect()

    @property
    def fake(self) -> FakeAgent:
        """The agent of the latest session."""
        return self.keeper.agents_made[-1]

    def connect(self, **options: Any) -> AcpClient:
        """One more client."""
        client = AcpClient(lambda output: AcpServer(self.keeper, output, is_local=True, version="1", **options))
        self.clients.append(client)
        return client

    async def new(self) -> str:
        """A session of the first client."""
        opened = await self.client.ask("session/new", cwd=str(self.keeper.folder), mcpServers=[])
        session: str = opened["sessionId"]
        self.client.take()
        return session


@asynccontextmanager
async def acp_world(folder: Path, *, shared: bool = False) -> AsyncIterator[AcpWorld]:
    """A world; closed afterwards."""
    world = AcpWorld(MemoryKeeper(folder, shared=shared))
    try:
        yield world
    finally:
        for client in world.clients:
            client.empty()
            await client.server.close()
        assert all(seat.left for seat in world.keeper.seats)
        await world.keeper.close()
