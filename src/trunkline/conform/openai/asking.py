"""One request and its answer, with a limit in time and in size, and a line for each in the record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

from trunkline.base import http, jsontext
from trunkline.base.process_errors import SpawnError
from trunkline.base.values import Value
from trunkline.conform.kit import Broken, NotApplicable, NotExercised
from trunkline.conform.openai.answer import EVENTS_TYPE, JSON_TYPE, OpenAIAnswer, events_in, parsed
from trunkline.conform.openai.prompts import PROMPTS
from trunkline.conform.record import Record, Who

if TYPE_CHECKING:
    import httpx

    Client: TypeAlias = httpx.AsyncClient

#: How long a server may take for one answer, unless told otherwise: a model may take its time.
TIMEOUT_SECONDS = 60.0
#: The most bytes of one answer.
MAX_ANSWER = 32 * 1024 * 1024
#: How much of a request and of an answer is told in a reason.
ASKED_CHARS, SHOWN_CHARS = 160, 240

_TOO_MANY = 429


class Target(Value):
    """The server under test, and how patient to be with it."""

    base_url: str
    model: str = ""
    """Empty: the first that it lists."""
    key: str = ""
    embedder: str = ""
    """The model for embeddings; the other one unless given."""
    timeout: float = TIMEOUT_SECONDS
    prompts: Mapping[str, str] = PROMPTS
    connect: Callable[[], Client] | None = None
    """Makes the clients that ask it; those of `base.http` unless given."""


class ServerMemory:
    """What all checks of a run know."""

    def __init__(self) -> None:
        self.reached = False
        self.model = ""


class Asking:
    """The requests of one check."""

    def __init__(self, target: Target, record: Record, memory: ServerMemory) -> None:
        self._target = target
        self._record = record
        self._memory = memory
        self._client: Client | None = None

    async def ask(
        self, method: str, path: str, body: object = None, *, content: bytes | None = None, key: str | None = None
    ) -> OpenAIAnswer:
        """Ask, and read all of the answer. `content` goes as it is, `key` in place of the usual one.

        Raises:
            Broken: none came in time.
            NotExercised: the server limits how often it may be asked.
            SpawnError: it was never reached.
        """
        if body is not None:
            content = jsontext.dumps(body)
        asked = _shown(method, path, content)
        self._note("host", f"{method} {path}", content)
        response, data = await self._performed(method, path, content, key, asked)
        self._memory.reached = True
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        text = data.decode("utf-8", "replace")
        shown = ascii(text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS] + "...")
        events = events_in(data) if kind == EVENTS_TYPE else ()
        answer = OpenAIAnswer(asked, response.status_code, kind, data, parsed(data), shown, events)
        self._note("agent", f"{answer.status} {kind}", data, answer)
        if answer.status == _TOO_MANY:
            raise NotExercised(f"{asked} was answered with 429: raise the server's limits for the kit, or wait")
        return answer

    async def leave(self, path: str, body: object) -> None:
        """Ask for a stream, and hang up after its first bytes.

        Raises:
            Broken: nothing came.
        """
        import httpx

        content = jsontext.dumps(body)
        self._note("host", f"POST {path}", content)
        client = self._ready()
        request = client.build_request("POST", self._target.base_url + path, headers=self._headers(), content=content)
        try:
            async with asyncio.timeout(self._target.timeout):
                response = await client.send(request, stream=True)
                async for _ in response.aiter_raw():
                    break
                self._record.remark("hung up")
                await response.aclose()
        except (TimeoutError, httpx.HTTPError) as error:
            raise Broken(f"{_shown('POST', path, content)}: {str(error) or 'no answer'}") from None

    async def break_off(self, path: str) -> None:
        """Begin a request, and hang up in the middle of its body."""
        parts = urlsplit(self._target.base_url)
        if parts.scheme != "http":
            raise NotApplicable("the kit breaks requests off over plain HTTP only")
        head = [f"POST {parts.path}{path} HTTP/1.1", f"Host: {parts.netloc}", "Content-Length: 1000"]
        head += [f"{name}: {value}" for name, value in self._headers().items()]
        self._record.add("host", f"POST {path} (half of it)".encode())
        try:
            async with asyncio.timeout(self._target.timeout):
                _, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
                writer.write("\r\n".join([*head, "", '{"model": ']).encode())
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (TimeoutError, OSError) as error:
            raise Broken(f"no connection could be made and left: {error}") from None

    async def close(self) -> None:
        """Let go of the connections."""
        if self._client is not None:
            await self._client.aclose()

    def _headers(self, key: str | None = None) -> dict[str, str]:
        used = self._target.key if key is None else key
        return {"content-type": JSON_TYPE, **({"authorization": f"Bearer {used}"} if used else {})}

    async def _performed(
        self, method: str, path: str, content: bytes | None, key: str | None, asked: str
    ) -> tuple[httpx.Response, bytes]:
        client = self._ready()
        import httpx

        try:
            async with asyncio.timeout(self._target.timeout):
                url, headers = self._target.base_url + path, self._headers(key)
                request = client.build_request(method, url, headers=headers, content=content)
                response = await client.send(request, stream=True)
                try:
                    return response, await http.whole(response.aiter_raw(), MAX_ANSWER)
                finally:
                    await response.aclose()
        except TimeoutError:
            problem = f"no complete answer within {self._target.timeout:g} s"
        except http.BodyTooLong as error:
            problem = str(error)
        except httpx.HTTPError as error:
            problem = f"the connection failed: {str(error) or type(error).__name__}"
        self._record.remark(problem)
        if not self._memory.reached:
            hint = f"{problem}. Is a server running there?"
            raise SpawnError(f"`{self._target.base_url}` cannot be reached", hint, "other")
        raise Broken(f"{asked}: {problem}")

    def _ready(self) -> Client:
        if self._client is None:
            secure = self._target.base_url.startswith("https:")
            try:
                self._client = self._target.connect() if self._target.connect else http.client(secure=secure)
            except ValueError as error:
                raise SpawnError("No connection could be made", str(error), "other") from None
        return self._client

    def _note(self, who: Who, head: str, body: bytes | None, answer: OpenAIAnswer | None = None) -> None:
        self._record.add(who, head.encode() + (b" " + body if body else b""), answer)


def _shown(method: str, path: str, content: bytes | None) -> str:
    if not content:
        return f"`{method} {path}`"
    text = content[: 4 * ASKED_CHARS].decode("utf-8", "replace")
    return f"`{method} {path}` {text if len(text) <= ASKED_CHARS else text[:ASKED_CHARS] + '...'}"
