"""Clients of ACP elsewhere: over HTTP, with all streams, and over a WebSocket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol

import httpx
from websockets.asyncio.client import ClientConnection, connect

from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from trunkline.wires.acp.remote import CONNECTION_HEADER, SESSION_HEADER

HELLO = {"protocolVersion": 1, "clientCapabilities": {}}
NEW = {"cwd": "/w", "mcpServers": []}


def message(method: str, params: Any, id: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params, **({} if id is None else {"id": id})}


def prompt(session: str = "s1", text: str = "hi") -> dict[str, Any]:
    return {"sessionId": session, "prompt": [{"type": "text", "text": text}]}


class At(Protocol):
    """Where it is."""

    @property
    def url(self) -> str:
        """Its address."""


class Browser:
    """A client over HTTP, and all that it was told, by stream."""

    def __init__(self, far: At, http: httpx.AsyncClient, headers: Mapping[str, str]) -> None:
        self.far = far
        self.http = http
        self.headers = dict(headers)
        self.told: dict[str, list[Any]] = {}
        self.comments = 0
        self._reading: dict[str, asyncio.Task[None]] = {}

    async def initialize(self, query: str = "") -> httpx.Response:
        answer = await self.post("initialize", HELLO, 0, query=query)
        if CONNECTION_HEADER in answer.headers:
            self.headers[CONNECTION_HEADER] = answer.headers[CONNECTION_HEADER]
        return answer

    async def post(
        self, method: str, params: Any, id: Any = None, session: str | None = None, query: str = ""
    ) -> httpx.Response:
        return await self.send(message(method, params, id), session, query)

    async def send(self, body: Any, session: str | None = None, query: str = "") -> httpx.Response:
        headers = self.headers | ({SESSION_HEADER: session} if session else {})
        return await self.http.post(self.far.url + query, json=body, headers=headers)

    async def listen(self, session: str = "") -> None:
        """Read a stream from now on."""
        begun = asyncio.Event()
        self.told.setdefault(session, [])

        async def read() -> None:
            headers = self.headers | {"accept": "text/event-stream"} | ({SESSION_HEADER: session} if session else {})
            async with self.http.stream("GET", self.far.url, headers=headers) as answer:
                assert answer.status_code == 200, await answer.aread()
                begun.set()
                async for line in answer.aiter_lines():
                    if line.startswith("data: "):
                        self.told[session].append(json.loads(line[6:]))
                    elif line:
                        self.comments += 1

        task = self._reading[session] = asyncio.create_task(read())
        waiting = asyncio.create_task(begun.wait())
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if task.done():
            task.result()

    def has_ended(self, session: str = "") -> bool:
        return self._reading[session].done()

    async def leave(self) -> None:
        for task in self._reading.values():
            task.cancel()
        await asyncio.gather(*self._reading.values(), return_exceptions=True)


@asynccontextmanager
async def browser(far: At, visitor: str = "ann", **headers: str) -> AsyncIterator[Browser]:
    """Such a client, which says who it is."""
    async with httpx.AsyncClient(timeout=PATIENCE_SECONDS, trust_env=False) as http:
        made = Browser(far, http, {"x-visitor": visitor, **headers})
        try:
            yield made
        finally:
            await made.leave()


@asynccontextmanager
async def socket(far: At, query: str = "", **headers: str) -> AsyncIterator[ClientConnection]:
    """A WebSocket to the agent."""
    url = far.url.replace("http", "ws", 1) + query
    async with connect(url, max_size=None, additional_headers=headers, close_timeout=0.5) as talking:
        yield talking


async def ask(talking: ClientConnection, *sent: Any) -> list[Any]:
    """Send something; gives as many answers."""
    for each in sent:
        await talking.send(each if isinstance(each, str | bytes) else json.dumps(each))
    async with asyncio.timeout(PATIENCE_SECONDS):
        return [json.loads(await talking.recv()) for _ in sent]


class Link(Protocol):
    """What carries messages, such as a WebSocket."""

    async def send(self, message: str) -> None:
        """Send one."""

    def __aiter__(self) -> AsyncIterator[str | bytes]:
        """Those that come."""


class Editor:
    """A client that gets everything in one stream, and what it was told."""

    def __init__(self, talking: Link) -> None:
        self._talking = talking
        self.told: list[Any] = []
        self.session = ""
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for frame in self._talking:
            self.told.append(json.loads(frame))

    async def send(self, method: str, params: Any, id: Any = None) -> None:
        await self._talking.send(json.dumps(message(method, params, id)))

    async def request(self, method: str, params: Any, id: Any) -> Any:
        """Ask for something, and wait for the answer."""
        await self.send(method, params, id)
        await until(lambda: self.answer(id) is not None)
        return self.answer(id)

    async def reply(self, id: Any, result: Any) -> None:
        await self._talking.send(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}))

    def answer(self, id: Any) -> Any:
        return next((each for each in self.told if each.get("id") == id and "method" not in each), None)

    @property
    def questions(self) -> list[Any]:
        return [each for each in self.told if each.get("method") == "session/request_permission"]

    def updates(self, kind: str) -> list[Any]:
        found = [each["params"]["update"] for each in self.told if each.get("method") == "session/update"]
        return [each for each in found if each["sessionUpdate"] == kind]

    @property
    def text(self) -> str:
        return "".join(each["content"]["text"] for each in self.updates("agent_message_chunk"))


def chosen(question: Any, kind: str = "allow_once") -> Any:
    """The answer to a question."""
    options = {option["kind"]: option["optionId"] for option in question["params"]["options"]}
    return {"outcome": {"outcome": "selected", "optionId": options[kind]}}
