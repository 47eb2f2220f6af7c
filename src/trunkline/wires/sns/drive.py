"""The runner's end: a client that reads with its credential and signs what it writes.

    sns = Sns("http://127.0.0.1:4317", agent_id, token, timeout=60)
    context = await sns.context(50)
    thread = await sns.create_thread(community_id, "Title", "Body", "DISCUSSION")
    await sns.close()

- Every exchange, from the connection to the last byte of the answer, is limited by `timeout`.
- A write is sent once. `SnsError` means that it was not done; `WriteUnclear` that it may have been: look before it is
  written again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from trunkline.base import http, jsontext
from trunkline.base.cutting import cut_between_words
from trunkline.base.values import Value
from trunkline.core.faults import ConfigError, Fault
from trunkline.wires.sns import codec
from trunkline.wires.sns.messages import AGENT_ID, RUNNER_TOKEN, RequestStatus, Signature, ThreadType

if TYPE_CHECKING:
    import httpx

#: The most bytes of an answer. A context of hundreds of long threads and a few large contracts has a million or two.
MAX_ANSWER = 32 * 1024 * 1024

#: How much of somebody else's error is repeated.
MAX_MESSAGE = 500

#: Ids are 25 characters; a longer text in the place of one is none.
MAX_ID = 256

#: From here on the answer says only that something broke, not whether it was before or after the write.
_BROKEN = 500
_NOT_FOUND = 404


class SnsError(Fault):
    """The network refused the request or could not be reached.

    Attributes:
        status: the status of the answer; None if there was none.
        payload: the body of the answer.
    """

    kind = "remote_protocol"

    def __init__(self, message: str, status: int | None = None, payload: Any = None) -> None:
        super().__init__(message)
        self.status = status
        self.payload = payload


class WriteUnclear(SnsError):
    """A write was sent, and no answer says what became of it."""


class _Answer(Value):
    status: int
    data: dict[str, Any]


class Sns:
    """One agent's access to one network. Belongs to the event loop that uses it."""

    def __init__(
        self,
        base_url: str,
        agent_id: str,
        token: str,
        *,
        timeout: float,
        check: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Nothing is connected yet.

        Args:
            timeout: seconds that each exchange may take.
            check: awaited when a write is about to be sent. What it raises reaches the caller, and nothing is sent.

        Raises:
            ConfigError: the address is none, or id or token cannot stand in a header.
        """
        self._base = base_url.rstrip("/")
        parts = _parts(self._base)
        self._place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self._agent_id = _header("agentId", agent_id)
        self._token = _header("runnerToken", token)
        self.timeout = timeout
        self._check = check
        self._secure = parts.scheme == "https"
        self._client: httpx.AsyncClient | None = None

    async def close(self) -> None:
        """Close all connections. Idempotent."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    # What a runner reads.

    async def general(self) -> dict[str, Any]:
        """The agent itself: `agent`, and the `community` that it is assigned to, or None."""
        path = f"/api/agents/{_segment(self._agent_id)}/general"
        return (await self._read(path, "Failed to fetch agent general data")).data

    async def context(self, comment_limit: int) -> dict[str, Any]:
        """What there is to know: the communities with their threads, comments and contracts."""
        query = urlencode({"commentLimit": comment_limit, "agentId": self._agent_id})
        fallback = "Failed to fetch runner context"
        answer = await self._read(f"/api/agents/context?{query}", fallback)
        return _member(answer, "context", fallback)

    async def thread_comments(self, thread_id: str, limit: int) -> dict[str, Any]:
        """A thread of the agent's community and its newest comments."""
        query = urlencode({"threadId": _text(thread_id), "commentLimit": limit})
        return (await self._read(f"/api/agents/threads/comments?{query}", "Failed to fetch thread comments")).data

    async def contract_source(
        self, *, contract_id: str | None = None, contract_address: str | None = None
    ) -> dict[str, Any]:
        """A contract of the agent's community with its source, named by exactly one of the two."""
        given = {"contractId": contract_id, "contractAddress": contract_address}
        query = urlencode({name: _text(value) for name, value in given.items() if value is not None})
        fallback = "Failed to fetch contract source"
        return _member(await self._read(f"/api/agents/contracts/source?{query}", fallback), "contract", fallback)

    async def thread(self, thread_id: str, after: str | None = None) -> dict[str, Any]:
        """A thread as everybody sees it: `thread`, and `comments`, oldest first: the first, or those after one.

        `nextAfter` says after which comment there are more, if there are.
        """
        query = "" if after is None else f"?{urlencode({'after': _text(after)})}"
        return (await self._read(f"/api/threads/{_segment(thread_id)}{query}", "Failed to fetch the thread")).data

    # What it writes.

    async def create_thread(self, community_id: str, title: str, body: str, type: ThreadType) -> dict[str, Any]:
        """Begin a thread; gives it as it was kept.

        Raises:
            SnsError: it was not begun.
            Unclear: perhaps it was.
        """
        content = {"communityId": community_id, "title": title, "body": body, "type": type}
        return await self._write("POST", "/api/threads", content, "thread", "Failed to create thread")

    async def comment(self, thread_id: str, body: str, kind: str | None = None) -> dict[str, Any]:
        """Add a comment; gives it as it was kept. Raises as `create_thread`."""
        content = {"body": body} if kind is None else {"body": body, "commentKind": kind}
        path = f"/api/threads/{_segment(thread_id)}/comments"
        return await self._write("POST", path, content, "comment", "Failed to create comment")

    async def set_request_status(self, thread_id: str, status: RequestStatus) -> dict[str, Any]:
        """Change the status of a request; gives the thread's part that changed. Raises as `create_thread`."""
        path = f"/api/threads/{_segment(thread_id)}/request-status"
        return await self._write("PATCH", path, {"status": status}, "thread", "Failed to set request status")

    async def mark_issued(self, *, thread_id: str | None = None, comment_id: str | None = None) -> dict[str, Any]:
        """Say that an issue was made of a report, or of a comment on one. Raises as `create_thread`."""
        kind, id = ("thread", thread_id) if comment_id is None else ("comment", comment_id)
        path = f"/api/{kind}s/{_segment(id or '')}/issued"
        return await self._write("PATCH", path, {"isIssued": True}, kind, f"Failed to mark {kind} issued")

    # How.

    async def _read(self, path: str, fallback: str) -> _Answer:
        answer = await _Exchange(self, fallback).perform("GET", path, self._credential(), None)
        if not _is_success(answer):
            told = _told(answer, fallback)
            if answer.status == _NOT_FOUND and not str(answer.data.get("error", "")).startswith("Agent"):
                # Most often it is another server's address, or one with `/api` behind it.
                told = f"{told} (`{self._place}`: is a network there?)"
            raise SnsError(told, answer.status, answer.data)
        return answer

    async def _nonce(self) -> str:
        fallback = "Failed to issue nonce"
        answer = await _Exchange(self, fallback).perform("POST", "/api/agents/nonce", self._credential(), None)
        if not _is_success(answer):
            raise SnsError(_told(answer, fallback), answer.status, answer.data)
        nonce = answer.data.get("nonce")
        if not isinstance(nonce, str) or not _fits_header(nonce.strip()):
            raise SnsError("Nonce endpoint returned empty nonce", answer.status, answer.data)
        return nonce.strip()

    async def _write(self, method: str, path: str, body: dict[str, Any], member: str, fallback: str) -> dict[str, Any]:
        data = jsontext.dumps(body)
        # What is hashed is what the other side will read: two halves of a character are one there.
        hashed = codec.body_hash(codec.parse_body(data))
        nonce = await self._nonce()
        timestamp = str(time.time_ns() // 1_000_000)
        payload = codec.payload(nonce, timestamp, hashed, self._agent_id)
        signature = Signature(self._token, self._agent_id, nonce, timestamp, codec.sign(self._token, payload))
        headers = {"content-type": "application/json", **signature.headers()}
        exchange = _Exchange(self, fallback, self._check)
        try:
            answer = await exchange.perform(method, path, headers, data)
        except SnsError as error:
            if not exchange.sent:
                raise
            raise WriteUnclear(f"{error} Whether it was written is not known.", error.status, error.payload) from None
        if answer.status >= _BROKEN:
            raise WriteUnclear(_told(answer, fallback), answer.status, answer.data)
        if not _is_success(answer):
            raise SnsError(_told(answer, fallback), answer.status, answer.data)
        written = answer.data.get(member)
        if not isinstance(written, dict):
            raise WriteUnclear(f"{fallback}: the answer has no `{member}`.", answer.status, answer.data)
        return written

    def _credential(self) -> dict[str, str]:
        return {RUNNER_TOKEN: self._token, AGENT_ID: self._agent_id}

    def _ready(self) -> httpx.AsyncClient:
        if self._client is None:
            try:
                self._client = http.client(secure=self._secure, connect=self.timeout, read=self.timeout)
            except ValueError as error:
                raise ConfigError(str(error)) from None
        return self._client


class _Exchange:
    """One request and its answer. `sent`: the network may have seen the request."""

    def __init__(self, sns: Sns, fallback: str, check: Callable[[], Awaitable[None]] | None = None) -> None:
        self._sns = sns
        self._fallback = fallback
        self._check = check
        self.sent = False

    async def perform(self, method: str, path: str, headers: dict[str, str], body: bytes | None) -> _Answer:
        """Ask, and read all of the answer.

        Raises:
            SnsError: no answer came, or not all of it in time.
        """
        import httpx

        sns = self._sns
        client = sns._ready()
        try:
            async with asyncio.timeout(sns.timeout):
                request = client.build_request(
                    method, sns._base + path, headers=headers, content=body, extensions={"trace": self._trace}
                )
                response = await client.send(request, stream=True)
                try:
                    return _Answer(response.status_code, _data(await self._body(response)))
                finally:
                    await response.aclose()
        except TimeoutError:
            problem = f"no complete answer within {sns.timeout:g} s"
        except httpx.HTTPError as error:
            problem = str(error) or type(error).__name__
        except httpx.InvalidURL as error:
            raise SnsError(f"{self._fallback}: {error}") from None
        raise SnsError(f"{self._fallback}: {problem} (`{sns._place}`).")

    async def _body(self, response: httpx.Response) -> bytes:
        try:
            return await http.whole(response.aiter_bytes(), MAX_ANSWER)
        except http.BodyTooLong as error:
            raise SnsError(f"{self._fallback}: {error}.", response.status_code) from None

    async def _trace(self, event: str, info: dict[str, Any]) -> None:
        # Until the first byte of the request is on its way, nothing can have happened.
        if event.endswith("send_request_headers.started"):
            if self._check is not None:
                await self._check()
            self.sent = True


def _parts(base: str) -> Any:
    hint = "Write `http://HOST:PORT` or `https://HOST`."
    try:
        parts = urlsplit(base)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
        parts = None
    if not usable or any(ord(char) <= ord(" ") for char in base):
        raise ConfigError("`snsBaseUrl` is not the address of a network.", hint=hint)
    return parts


def _header(name: str, value: str) -> str:
    if not _fits_header(value):
        raise ConfigError(f"`{name}` is empty, or has characters that a header cannot contain.")
    return value


def _fits_header(value: str) -> bool:
    return bool(value) and value.isascii() and value.isprintable() and " " not in value


def _segment(id: str) -> str:
    """An id as one part of a path, and never as a way to another path."""
    if not id or len(id) > MAX_ID or not id.strip("."):
        raise SnsError(f"`{id[:40]}` is not an id.")
    return quote(_text(id), safe="")


def _text(value: str) -> bytes:
    return value.encode("utf-8", "surrogatepass")


def _data(body: bytes) -> dict[str, Any]:
    """The JSON object of an answer; what is none comes as `raw`."""
    if not body.strip():
        return {}
    try:
        found = jsontext.loads(body)
    except ValueError:
        return {"raw": cut_between_words(body.decode("utf-8", "replace"), MAX_MESSAGE)}
    return found if isinstance(found, dict) else {"raw": found}


def _is_success(answer: _Answer) -> bool:
    return 200 <= answer.status < 300


def _told(answer: _Answer, fallback: str) -> str:
    """What the network says is wrong."""
    error = answer.data.get("error")
    return (
        cut_between_words(error, MAX_MESSAGE) if isinstance(error, str) and error else f"{fallback} ({answer.status})"
    )


def _member(answer: _Answer, name: str, fallback: str) -> dict[str, Any]:
    found = answer.data.get(name)
    if not isinstance(found, dict):
        raise SnsError(f"{fallback}: the answer has no `{name}`.", answer.status, answer.data)
    return found
