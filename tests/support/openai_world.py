"""OpenAI-compatible HTTP in front of sessions in memory, and clients that talk to it over ASGI."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx

from tests.support.fake_agent import FakeAgent
from tests.support.keeper import FAKE, MemoryKeeper
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base.asgi_write_now import WRITE_NOW, WriteNow
from trunkline.core.keeper import OfferedAgent
from trunkline.wires.openai.serve import OpenAIApplication

BASE = "http://127.0.0.1:4500"
ECHO, MODEL = "echo", "model:mock"
OFFERED = (OfferedAgent(ECHO, "Says it again."), OfferedAgent(FAKE), OfferedAgent(MODEL, is_model=True))


class Caller:
    """Somebody who reads a stream, straight from the application: it reads when a test lets it."""

    def __init__(
        self,
        app: Any,
        path: str,
        body: Any,
        headers: Mapping[str, str] = {},
        *,
        slow: bool = False,
        write_now: WriteNow | None = None,
    ) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.ended = False
        self.chunks: list[bytes] = []
        self._body: bytes | None = json.dumps(body).encode()
        self._gone = asyncio.Event()
        self.may_read = asyncio.Event()
        if not slow:
            self.may_read.set()
        given = {"content-type": "application/json", "host": "127.0.0.1:4500", **headers}
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
            "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "",
            "headers": [(name.lower().encode(), value.encode()) for name, value in given.items()],
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 4500),
            "extensions": {} if write_now is None else {WRITE_NOW: write_now},
        }  # fmt: skip
        self.task = asyncio.create_task(app(scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    def cut_off(self) -> None:
        """Hang up before anything was sent."""
        self._body = None
        self._gone.set()

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            return
        await self.may_read.wait()
        self.chunks.append(message["body"])
        self.ended = not message.get("more_body")

    @property
    def text(self) -> str:
        """All that was read."""
        return b"".join(self.chunks).decode()

    @property
    def events(self) -> list[Any]:
        """The data of what was read; the mark of the end is None."""
        return events_in(self.text)

    async def leave(self) -> None:
        """Hang up, and see that nothing is left of it."""
        self._gone.set()
        self.may_read.set()
        await self.whole()

    async def whole(self) -> None:
        """Read to the end."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self.task


def events_in(text: str) -> list[Any]:
    """The data of a stream's events, in order; the mark of the end is None. Fails where the form is wrong."""
    assert "\r" not in text
    assert not text or text.endswith("\n\n")
    found = []
    for block in text.split("\n\n")[:-1]:
        if block.startswith(":"):
            continue
        *named, data = block.split("\n")
        assert data.startswith("data: ")
        event: Any = None if data == "data: [DONE]" else json.loads(data.removeprefix("data: "))
        assert named == ([f"event: {event['type']}"] if named else [])
        found.append(event)
    return found


class OpenAIWorld:
    """Everything that a test may want of it."""

    def __init__(self, keeper: MemoryKeeper, app: OpenAIApplication, client: httpx.AsyncClient) -> None:
        self.keeper = keeper
        self.app = app
        self._client = client
        self._callers: list[Caller] = []

    @property
    def fake(self) -> FakeAgent:
        return self.keeper.fake

    async def ask(self, method: str, path: str, body: Any = None, **more: Any) -> httpx.Response:
        """Send a request; gives the response. `content` is sent as it is."""
        headers = {"content-type": "application/json", **more.pop("headers", {})}
        content = more.pop("content", None if body is None else json.dumps(body).encode())
        return await self._client.request(method, f"/v1/{path}", content=content, headers=headers, **more)

    async def get(self, path: str) -> httpx.Response:
        return await self.ask("GET", path)

    async def chat(self, text: str = "Hello there", model: str = ECHO, **more: Any) -> httpx.Response:
        """A question in Chat Completions."""
        headers = more.pop("headers", {})
        body = {"model": model, "messages": [{"role": "user", "content": text}], **more}
        return await self.ask("POST", "chat/completions", body, headers=headers)

    async def respond(self, input: Any = "Hello there", model: str = ECHO, **more: Any) -> httpx.Response:
        """A question in Responses."""
        headers = more.pop("headers", {})
        return await self.ask("POST", "responses", {"model": model, "input": input, **more}, headers=headers)

    def call(self, path: str, body: Any, **more: Any) -> Caller:
        """Somebody who reads a stream, or waits for an answer."""
        if path == "chat/completions":
            body = {"model": FAKE, "messages": [{"role": "user", "content": "Hello"}], **body}
        else:
            body = {"model": FAKE, "input": "Hello", **body}
        self._callers.append(Caller(self.app, f"/v1/{path}", body, **more))
        return self._callers[-1]

    async def close(self) -> None:
        for caller in self._callers:
            await caller.leave()
        self.app.close()
        await self.app.closed()
        await self.keeper.close()


@asynccontextmanager
async def openai_world() -> AsyncIterator[OpenAIWorld]:
    """An application, and who talks to it. Every seat was left afterwards."""
    keeper = MemoryKeeper(*OFFERED)
    app = OpenAIApplication(lambda scope: keeper)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
        world = OpenAIWorld(keeper, app, client)
        try:
            yield world
        finally:
            await world.close()
        assert all(seat.left for seat in keeper.seats)


def error_of(response: httpx.Response, status: int) -> dict[str, Any]:
    """What an error says; fails where it has not the form."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    found: dict[str, Any] = response.json()["error"]
    assert list(response.json()) == ["error"]
    assert list(found) == ["message", "type", "param", "code"]
    assert found["message"]
    kind = "insufficient_quota" if status == 429 else "server_error" if status >= 500 else "invalid_request_error"
    assert found["type"] == kind
    return found
