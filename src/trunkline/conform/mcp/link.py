"""A connection to a server under test: what is sent, what comes back, and a record of both."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from trunkline.base import http, jsontext
from trunkline.base.process_errors import SpawnError
from trunkline.conform.kit import Broken
from trunkline.conform.mcp.vocabulary import PROTOCOL_VERSION, Json, is_response
from trunkline.conform.process import RunningTarget
from trunkline.conform.record import Record

if TYPE_CHECKING:
    import httpx

_LOOK_SECONDS = 0.02


class McpLink:
    """What both transports have in common."""

    is_stdio = False

    def __init__(self, record: Record) -> None:
        self.record = record
        self.heard: list[Json] = []
        """All messages that came, in order."""
        self.info: Json = {}
        """The result of `initialize`."""
        self._last = 0

    def write(self, data: bytes) -> None:
        """Send some bytes, whatever they are."""
        raise NotImplementedError

    async def close(self) -> None:
        """End it."""
        raise NotImplementedError

    @property
    def is_over(self) -> bool:
        """Whether nothing more can come."""
        return False

    @property
    def ending(self) -> str:
        """Why nothing more can come, for people."""
        return "the connection ended"

    def hear(self, line: bytes) -> Any:
        """A message of the server, if it is one."""
        try:
            message = jsontext.loads(line)
        except ValueError:
            return None
        if isinstance(message, dict):
            self.heard.append(message)
        return message

    def send(self, message: Json) -> None:
        """Send a message."""
        line = jsontext.dumps(message)
        self.record.add("host", line[:4096], message)
        self.write(line + b"\n")

    def begin(self, method: str, params: Mapping[str, Any] | None = None, id: Any = None) -> Any:
        """Send a request; gives its id."""
        self._last += 1
        id = self._last if id is None else id
        message: Json = {"jsonrpc": "2.0", "id": id, "method": method}
        if params is not None:
            message["params"] = dict(params)
        self.send(message)
        return id

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification."""
        self.send({"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": dict(params)}))

    def answer_to(self, id: Any) -> Json | None:
        """The answer to a request, if it is there. `1` is not `"1"`, and not `true`."""
        for message in self.heard:
            if is_response(message) and message.get("id") == id and type(message.get("id")) is type(id):
                return message
        return None

    async def until(self, condition: Callable[[], object], within: float) -> bool:
        """Wait until something holds, or cannot any more."""
        deadline = time.monotonic() + within
        while not condition():
            if time.monotonic() > deadline or self.is_over:
                return bool(condition())
            await asyncio.sleep(_LOOK_SECONDS)
        return True

    async def answer(self, id: Any, within: float, what: str) -> Json:
        """Wait for an answer.

        Raises:
            Broken: it did not come.
        """
        if not await self.until(lambda: self.answer_to(id) is not None, within):
            raise Broken(
                f"{what} was not answered: {self.ending if self.is_over else f'nothing came within {within:g} s'}"
            )
        found = self.answer_to(id)
        return found or {}

    async def ask(self, method: str, params: Mapping[str, Any] | None, within: float) -> Json:
        """Send a request and wait for its answer."""
        return await self.answer(self.begin(method, params), within, f"`{method}`")


class StdioLink(McpLink):
    """A program, by its standard input and output."""

    is_stdio = True
    process: RunningTarget

    def write(self, data: bytes) -> None:
        self.process.write(data)

    @property
    def is_over(self) -> bool:
        return self.record.exit_code is not None

    @property
    def ending(self) -> str:
        return f"the server {self.process.how_it_ended}"

    async def close(self) -> None:
        await self.process.close()


class HttpLink(McpLink):
    """A server on the web, by streamable HTTP: each message is a request of its own."""

    def __init__(self, record: Record, url: str, headers: Mapping[str, str]) -> None:
        super().__init__(record)
        self._url = url
        self._headers = headers
        self._client: httpx.AsyncClient = http.client(secure=url.startswith("https"))
        self._tasks: set[asyncio.Task[None]] = set()
        self.session: str | None = None
        self.version: str | None = None
        self.statuses: list[int] = []
        """Of the answers, in the order in which they came."""
        self.failure: Exception | None = None

    def headers(self, **more: str | None) -> dict[str, str]:
        """Those of a message, with some changed (`mcp_session_id=...`) or left out (None)."""
        found: dict[str, str | None] = {
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
            "mcp-session-id": self.session,
            "mcp-protocol-version": self.version,
            **self._headers,
        }
        found |= {name.replace("_", "-"): value for name, value in more.items()}
        return {name: value for name, value in found.items() if value is not None}

    def write(self, data: bytes) -> None:
        task = asyncio.create_task(self._post(data.rstrip(b"\n")), name="a message")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def request(self, method: str, content: bytes = b"", **headers: str | None) -> httpx.Response:
        """One request of HTTP, and its whole answer; the first bytes of a stream that does not end.

        Raises:
            Broken: there was no answer.
        """
        import httpx

        self.record.remark(f"{method} {', '.join(sorted(headers)) or ''}")
        try:
            async with self._client.stream(
                method, self._url, content=content, headers=self.headers(**headers)
            ) as response:
                if not response.headers.get("content-type", "").startswith("text/event-stream"):
                    await response.aread()
                self.record.remark(f"status {response.status_code}")
                return response
        except httpx.HTTPError as error:
            raise Broken(f"{method} was not answered: {type(error).__name__}") from None

    async def _post(self, data: bytes) -> None:
        import httpx

        try:
            async with self._client.stream("POST", self._url, content=data, headers=self.headers()) as response:
                self.statuses.append(response.status_code)
                self.session = response.headers.get("mcp-session-id", self.session)
                async for line in self._lines(response):
                    self.record.add("agent", line[:4096], self.hear(line))
        except httpx.ConnectError as error:
            self.failure = error
        except httpx.HTTPError as error:
            self.record.remark(f"the request failed: {type(error).__name__}")

    async def _lines(self, response: httpx.Response) -> Any:
        """The messages of an answer: of a stream of events, or the body as it is."""
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            body = await response.aread()
            if body:
                yield body
            return
        async for line in response.aiter_lines():
            if line.startswith("data:") and (found := line.removeprefix("data:").strip()):
                yield found.encode()

    async def settled(self) -> None:
        """Wait until everything that was sent has its answer."""
        if self._tasks:
            await asyncio.wait(tuple(self._tasks))

    async def close(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(tuple(self._tasks))
        await self._client.aclose()


def hello(version: str = PROTOCOL_VERSION) -> Json:
    """The parameters of `initialize`."""
    return {
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "trunkline-conform", "version": "1"},
    }


def unreachable(url: str, error: Exception) -> SpawnError:
    """A server that cannot be reached at all: nothing can be said of it."""
    return SpawnError(f"`{url}` cannot be reached", str(error) or type(error).__name__, "other")
