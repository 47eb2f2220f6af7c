"""An exchange with an agent on strings, people of every role, and clients that talk to its API over ASGI."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from starlette.applications import Starlette

from tests.support.fake_agent import FakeAgent
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base.asgi_write_now import WRITE_NOW, WriteNow
from trunkline.core.agent import Agent
from trunkline.core.faults import ConfigError
from trunkline.exchange.api.app import application
from trunkline.exchange.exchange import Exchange, by_registry
from trunkline.exchange.settings import ROLES, AgentBudget, AgentSettings, ExchangeSettings, PersonSettings

BASE = "http://127.0.0.1:4400"
FAKE, BROKEN = "fake", "broken"


class Clock:
    """The time in milliseconds, which tests set."""

    def __init__(self) -> None:
        self.now = 1_771_400_000_000

    def __call__(self) -> int:
        self.now += 1
        return self.now


class Reader:
    """Somebody who reads a stream of events, straight from the application: it reads when a test lets it."""

    def __init__(
        self,
        app: Starlette,
        path: str,
        headers: Mapping[str, str],
        *,
        slow: bool = False,
        write_now: WriteNow | None = None,
    ) -> None:
        """`write_now`: the server's extension of that name."""
        self.status = 0
        self.ended = False
        self.chunks: list[bytes] = []
        self._gone = asyncio.Event()
        self.may_read = asyncio.Event()
        if not slow:
            self.may_read.set()
        path, _, query = path.partition("?")
        raw = [(b"host", b"127.0.0.1:4400"), *((k.lower().encode(), v.encode()) for k, v in headers.items())]
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
            "path": path, "raw_path": path.encode(), "query_string": query.encode(), "root_path": "", "headers": raw,
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 4400),
            "extensions": {} if write_now is None else {WRITE_NOW: write_now},
        }  # fmt: skip
        self.task = asyncio.create_task(app(scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            return
        await self.may_read.wait()
        self.chunks.append(message["body"])
        self.ended = not message.get("more_body")

    @property
    def text(self) -> str:
        """All that was read."""
        return b"".join(self.chunks).decode()

    @property
    def events(self) -> list[tuple[str, dict[str, Any]]]:
        """The kinds and the data of what was read."""
        found = []
        for block in self.text.split("\n\n"):
            fields = dict(line.split(": ", 1) for line in block.split("\n") if line and not line.startswith(":"))
            if fields:
                found.append((fields["event"], json.loads(fields["data"])))
                assert "id" not in fields or int(fields["id"]) == found[-1][1]["seq"]
        return found

    @property
    def kinds(self) -> list[str]:
        """The kinds alone."""
        return [kind for kind, _ in self.events]

    async def leave(self) -> None:
        """Hang up, and see that nothing is left of it."""
        self._gone.set()
        self.may_read.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self.task


class World:
    """Everything that a test may want of an exchange."""

    def __init__(self, exchange: Exchange, app: Starlette, client: httpx.AsyncClient, clock: Clock) -> None:
        self.exchange = exchange
        self.app = app
        self.clock = clock
        self.fakes: list[FakeAgent] = []
        self._client = client
        self._readers: list[Reader] = []

    @property
    def fake(self) -> FakeAgent:
        """The agent that was made last."""
        return self.fakes[-1]

    async def ask(self, method: str, path: str, body: Any = None, who: str | None = "admin", **more: Any) -> Any:
        """Send a request as somebody; gives the response. `headers` that are a list are sent as they are."""
        given = more.pop("headers", {})
        own = {} if who is None else {"authorization": f"Bearer {token(who)}"}
        headers = given if isinstance(given, list) else own | given
        content = more.pop("content", None if body is None else json.dumps(body).encode())
        return await self._client.request(method, path, content=content, headers=headers, **more)

    async def get(self, path: str, who: str | None = "admin", **more: Any) -> Any:
        return await self.ask("GET", path, who=who, **more)

    async def post(self, path: str, body: Any = None, who: str | None = "admin", **more: Any) -> Any:
        return await self.ask("POST", path, body, who, **more)

    async def session(self, agent: str = FAKE, **more: Any) -> str:
        """A new session."""
        found = await self.post("/api/sessions", {"agent": agent, **more})
        assert found.status_code == 200, found.text
        return str(found.json()["id"])

    async def say(self, session: str, text: str = "Hello", who: str = "admin", **more: Any) -> int:
        """Say something; gives the turn."""
        found = await self.post(f"/api/sessions/{session}/messages", {"text": text, **more}, who)
        assert found.status_code == 202, found.text
        return int(found.json()["turn"])

    def read(
        self, session: str, query: str = "", who: str = "admin", *, last: int | None = None, slow: bool = False
    ) -> Reader:
        """Watch a session; `last` is the event that was seen last."""
        sent = {"authorization": f"Bearer {token(who)}"} | ({} if last is None else {"last-event-id": str(last)})
        reader = Reader(self.app, f"/api/sessions/{session}/events{query}", sent, slow=slow)
        self._readers.append(reader)
        return reader

    async def close(self) -> None:
        """Let everybody leave."""
        for reader in self._readers:
            await reader.leave()


def token(who: str) -> str:
    """Somebody's token."""
    return f"the token of {who}"


@asynccontextmanager
async def world(
    home: Path,
    *,
    budget: AgentBudget | None = None,
    script: str | None = None,
    local: bool = False,
    reload: Callable[[], Awaitable[None]] | None = None,
    making: Callable[[], Awaitable[object]] | None = None,
    **more: Any,
) -> AsyncIterator[World]:
    """An exchange in a directory. Its agents: `fake`, on strings; `echo`; `broken`, which cannot be made.

    `making` is awaited before each agent is made, and the exchange is not waited for then.
    """
    workspace = home / "workspace"
    workspace.mkdir(exist_ok=True)
    agents = {
        name: AgentSettings(name, kind, str(workspace), budget=budget or AgentBudget())
        for name, kind in ((FAKE, "fake:strings"), ("echo", "echo"), (BROKEN, "broken:agent"))
    }
    if script is not None:
        (home / "script.yaml").write_text(script)
        agents["scripted"] = AgentSettings("scripted", f"scripted:{home / 'script.yaml'}", str(workspace))
    people: dict[str, PersonSettings] = {
        role: PersonSettings(role, hashlib.sha256(token(role).encode()).hexdigest(), role) for role in ROLES
    }
    settings = ExchangeSettings(str(home / "trunkline.toml"), str(home), agents=agents, people=people, **more)
    fakes: list[FakeAgent] = []

    async def make(name: str, options: dict[str, Any]) -> Agent:
        if making is not None:
            await making()
        if name == "broken:agent":
            raise ConfigError("It lacks a key.")
        if name != "fake:strings":
            return await by_registry(name, options)
        fakes.append(FakeAgent())
        return fakes[-1]

    clock = Clock()
    async with Exchange.opened(settings, make=make, clock=clock, wait=making is None) as exchange:
        app = application(exchange, local=local, reload=reload)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
            found = World(exchange, app, client, clock)
            found.fakes = fakes
            try:
                yield found
            finally:
                await found.close()
