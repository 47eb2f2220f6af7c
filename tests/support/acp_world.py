"""Sessions in memory behind the agent end of ACP, and clients that speak it in raw messages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.fake_agent import FakeAgent
from tests.support.keeper import FAKE, MemoryKeeper
from tests.support.patience import PATIENCE_SECONDS
from trunkline.core.keeper import OfferedAgent
from trunkline.wires.acp.serve import AcpServer


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
            await asyncio.wait_for(self._news.wait(), PATIENCE_SECONDS)

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
            await asyncio.wait_for(self._news.wait(), PATIENCE_SECONDS)

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
        return self.keeper.fake

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
    world = AcpWorld(MemoryKeeper(OfferedAgent(FAKE), folder=folder, shared=shared))
    try:
        yield world
    finally:
        for client in world.clients:
            client.empty()
            await client.server.close()
        assert all(seat.left for seat in world.keeper.seats)
        await world.keeper.close()
