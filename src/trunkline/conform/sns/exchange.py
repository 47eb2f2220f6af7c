"""One request and its answer, with a limit in time and in size, and a line for each in the record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from trunkline.base import http, jsontext
from trunkline.base.process_errors import SpawnError
from trunkline.base.redact import Redactor
from trunkline.base.values import Value
from trunkline.conform.kit import Broken, NotExercised
from trunkline.conform.record import Record

if TYPE_CHECKING:
    import httpx

    Client: TypeAlias = httpx.AsyncClient

#: How long a network may take for one answer.
TIMEOUT_SECONDS = 10.0
#: The most bytes of one answer: a context with hundreds of long threads and a few large contracts has a million or two.
MAX_ANSWER = 32 * 1024 * 1024
#: How much of an answer is told in a reason.
SHOWN_CHARS = 160

_TOO_MANY = 429
#: Headers of a request that hold secrets; an answer has no reason to repeat them.
_SECRET = ("x-runner-token", "authorization")
#: Members of an answer in which a network issues secrets: credentials and sessions.
_ISSUED = ("runnerToken", "token")


class Target(Value):
    """The network under test."""

    base_url: str
    timeout: float = TIMEOUT_SECONDS
    connect: Callable[[], Client] | None = None
    """Makes the clients that ask it; those of `base.http` unless given."""
    sleep: Callable[[float], Any] = asyncio.sleep
    """Waits so many seconds."""


class SnsResponse(Value):
    """What came back."""

    asked: str
    """The method and the path."""
    status: int
    headers: Mapping[str, str]
    """By their names in lower case."""
    data: Any
    """The JSON value in it; None if it holds none."""
    shown: str
    """The beginning of it, for a reason, without secrets."""
    leaked: bool = False
    """Whether it repeats a secret of the request."""

    def member(self, *names: str) -> Any:
        """A member of the object in it, or of one deeper; None if it is not there."""
        found = self.data
        for name in names:
            found = found.get(name) if isinstance(found, dict) else None
        return found


class RunMemory:
    """What all checks of a run know: secrets that must not stand in a record, and whether the network was reached."""

    def __init__(self) -> None:
        self.redactor = Redactor()
        self.secrets: set[str] = set()
        self.reached = False

    def keep(self, *secrets: str) -> None:
        """Never show these."""
        new = {secret for secret in secrets if secret not in self.secrets}
        if new:
            self.secrets |= new
            self.redactor.learn(new)


class Exchanges:
    """The requests of one check."""

    def __init__(self, target: Target, record: Record, memory: RunMemory) -> None:
        self._target = target
        self._record = record
        self._memory = memory
        self._client: Client | None = None

    async def ask(
        self, method: str, path: str, headers: Mapping[str, str], content: bytes | None = None
    ) -> SnsResponse:
        """Ask, and read all of the answer.

        Raises:
            Broken: none came in time.
            NotExercised: the network limits how often it may be asked.
            SpawnError: it was never reached.
        """
        self._note("host", f"{method} {path} {jsontext.dumps(dict(headers)).decode()}", content)
        asked = f"{method} {path.partition('?')[0]}"
        response, body = await self._performed(method, path, headers, content, asked)
        self._memory.reached = True
        answer = self._answer(asked, headers, response, body)
        shown = {name: value for name, value in answer.headers.items() if name in ("content-type", "retry-after")}
        self._note("agent", f"{answer.status} {jsontext.dumps(shown).decode()}", body, answer)
        if answer.status == _TOO_MANY:
            after = answer.headers.get("retry-after", "?")
            raise NotExercised(
                f"{asked} was answered with 429 (Retry-After: {after}): raise the network's rate limit for the kit"
            )
        return answer

    async def close(self) -> None:
        """Let go of the connections."""
        if self._client is not None:
            await self._client.aclose()

    async def _performed(
        self, method: str, path: str, headers: Mapping[str, str], content: bytes | None, asked: str
    ) -> tuple[httpx.Response, bytes]:
        client = self._ready()
        import httpx

        try:
            async with asyncio.timeout(self._target.timeout):
                request = client.build_request(
                    method, self._target.base_url + path, headers=dict(headers), content=content
                )
                response = await client.send(request, stream=True)
                try:
                    return response, await _whole(response, asked)
                finally:
                    await response.aclose()
        except TimeoutError:
            problem = f"no complete answer within {self._target.timeout:g} s"
        except httpx.HTTPError as error:
            problem = str(error) or type(error).__name__
        self._record.remark(problem)
        if not self._memory.reached:
            hint = f"{problem}. Is a network running there?"
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

    def _answer(self, asked: str, sent: Mapping[str, str], response: httpx.Response, body: bytes) -> SnsResponse:
        text = body.decode("utf-8", "replace")
        headers = {name.lower(): value for name, value in response.headers.items()}
        told = [text, *headers.values()]
        secrets = [sent[name].removeprefix("Bearer ") for name in _SECRET if len(sent.get(name, "")) >= 8]
        try:
            data = jsontext.loads(body)
        except ValueError:
            data = None
        if isinstance(data, dict):
            self._memory.keep(*(data[name] for name in _ISSUED if isinstance(data.get(name), str) and data[name]))
        said = data["error"] if isinstance(data, dict) and isinstance(data.get("error"), str) else text
        return SnsResponse(
            asked,
            response.status_code,
            headers,
            data,
            self._memory.redactor.text(said)[:SHOWN_CHARS],
            any(secret in each for secret in secrets for each in told),
        )

    def _note(self, who: Any, head: str, body: bytes | None, answer: SnsResponse | None = None) -> None:
        text = f"{head} {body.decode('utf-8', 'backslashreplace')}" if body else head
        self._record.add(who, self._memory.redactor.text(text).encode("utf-8", "backslashreplace"), answer)


async def _whole(response: httpx.Response, asked: str) -> bytes:
    try:
        return await http.whole(response.aiter_raw(), MAX_ANSWER)
    except http.BodyTooLong as error:
        raise Broken(f"{asked}: {error}") from None
