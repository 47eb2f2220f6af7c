"""A small agent social network on loopback: real HTTP, signatures checked, a few threads in memory, and accidents.

async with SnsStub() as sns:
    sns.accident("POST /api/threads", HANG)     # the next such request is done, and its answer never comes
    ...
    assert sns.threads[0]["title"] == "..."
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from itertools import count
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.loop import hold_limits
from tests.support.provider import Part, Reply, Request, StubProvider
from trunkline.wires.sns import codec, drive

TOKEN = "rnr_" + "0123456789abcdef" * 4
AGENT = "cagent0000000000000000001"
COMMUNITY = "ccomm00000000000000000001"
SLUG = "vault-0x1234"
HANDLE = "Tester"
CONTRACT = "0x" + "ab" * 20


#: What nothing else waits for.
_HURRIED_SECONDS = 0.2007


def hurry(monkeypatch: pytest.MonkeyPatch, stub: SnsStub, place: str) -> None:
    """Limit what is asked of one place, `METHOD PATH`. The time is over when the network has had its accident there."""
    perform = drive._Exchange.perform
    stub.on_accident[place] = hold_limits(monkeypatch, _HURRIED_SECONDS)

    async def limited(
        exchange: drive._Exchange, method: str, path: str, headers: dict[str, str], body: bytes | None
    ) -> Any:
        usual = exchange._sns.timeout
        if f"{method} {path}" == place:
            exchange._sns.timeout = _HURRIED_SECONDS
        try:
            return await perform(exchange, method, path, headers, body)
        finally:
            exchange._sns.timeout = usual

    monkeypatch.setattr(drive._Exchange, "perform", limited)


class SnsStub:
    """The network. `log` has each request as `METHOD PATH`, `writes` the bodies of signed ones that were accepted."""

    def __init__(self) -> None:
        self.threads: list[dict[str, Any]] = []
        self.comments: list[dict[str, Any]] = []
        self.log: list[str] = []
        self.writes: list[tuple[str, Any]] = []
        self.refusals: dict[str, tuple[int, str]] = {}
        self.community: dict[str, Any] = {
            "id": COMMUNITY, "slug": SLUG, "name": "Vault", "status": "ACTIVE", "githubRepositoryUrl": None,
            "contracts": [{
                "id": "ccontract0000000000000001", "name": "Vault", "chain": "Sepolia", "address": CONTRACT,
                "abi": [], "abiFunctions": [],
            }],
        }  # fmt: skip
        self.assigned: dict[str, Any] | None = {"id": COMMUNITY, "slug": SLUG, "name": "Vault", "status": "ACTIVE"}
        self.general = {"llmProvider": "OPENAI", "llmModel": "stub", "llmBaseUrl": None}
        self.page = 200
        """Comments of a thread in one answer."""
        self.on_accident: dict[str, Callable[[], None]] = {}
        """Called when the accident at a place has happened."""
        self._accidents: dict[str, list[Part]] = {}
        self._nonces: set[str] = set()
        self._numbers = count(1)
        self._server = StubProvider(self._answer)

    async def __aenter__(self) -> SnsStub:
        await self._server.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop()

    @property
    def url(self) -> str:
        return self._server.url

    @property
    def requests(self) -> list[Request]:
        return self._server.requests

    async def asked(self, count: int) -> None:
        """Wait until that many requests have come."""
        await self._server.asked(count)

    def accident(self, place: str, *parts: Part) -> None:
        """The next request to `METHOD PATH` is done, and answered with these parts in place of its answer."""
        self._accidents[place] = list(parts)

    def refuse(self, place: str, status: int, error: str) -> None:
        """Every later request to that place is refused."""
        self.refusals[place] = (status, error)

    def thread(self, type: str = "DISCUSSION", title: str = "A thread", author: str = "Other") -> str:
        """One more thread; gives its id."""
        return str(self._thread(title, "Its body", type, author)["id"])

    def count(self, place: str) -> int:
        return self.log.count(place)

    # How

    def _answer(self, request: Request) -> Reply:
        parts = urlsplit(request.target)
        place = f"{request.method} {parts.path}"
        self.log.append(place)
        if place in self.refusals:
            status, error = self.refusals[place]
            return _json({"error": error}, status)
        if request.headers.get("x-runner-token") != TOKEN or request.headers.get("x-agent-id") != AGENT:
            return _json({"error": "Invalid or revoked runner credential"}, 401)
        if request.method == "GET" or place == "POST /api/agents/nonce":
            reply = self._read(parts.path, parse_qs(parts.query))
        else:
            reply = self._signed(request, parts.path)
        if place in self._accidents:
            self.on_accident.get(place, lambda: None)()
            return Reply(self._accidents.pop(place), headers={"content-type": "application/json"})
        return reply

    def _read(self, path: str, query: Mapping[str, list[str]]) -> Reply:
        if path == "/api/agents/nonce":
            nonce = f"{next(self._numbers):032x}"
            self._nonces.add(nonce)
            return _json({"nonce": nonce, "expiresAt": _now()})
        if path == f"/api/agents/{AGENT}/general":
            return _json({"agent": {"id": AGENT, "handle": HANDLE, **self.general}, "community": self.assigned})
        if path == "/api/agents/context":
            community = {**self.community, "threads": self.threads[::-1], "recentComments": self.comments[::-1]}
            return _json({"context": {"constraints": {}, "communities": [community]}})
        if path == "/api/agents/contracts/source":
            return _json({"contract": {**self.community["contracts"][0], "source": "contract Vault {}"}})
        if path == "/api/agents/threads/comments":
            id = query["threadId"][0]
            found = [each for each in self.comments[::-1] if each["threadId"] == id and each["kind"] == "DISCUSSION"]
            return _json({"thread": self._found(id), "comments": found[: self.page]})
        return self._page(path.rpartition("/")[2], query.get("after", [""])[0])

    def _page(self, id: str, after: str) -> Reply:
        found = [each for each in self.comments if each["threadId"] == id]
        start = next((place for place, each in enumerate(found, 1) if each["id"] == after), 0)
        shown = found[start : start + self.page]
        more = shown[-1]["id"] if len(found) > start + self.page else None
        return _json({"thread": self._found(id), "comments": shown, "hasMore": more is not None, "nextAfter": more})

    def _signed(self, request: Request, path: str) -> Reply:
        body = codec.parse_body(request.body)
        headers = request.headers
        nonce, stamp = headers["x-agent-nonce"], headers["x-agent-timestamp"]
        payload = codec.payload(nonce, stamp, codec.body_hash(body), AGENT)
        if nonce not in self._nonces or abs(time.time() * 1000 - float(stamp)) > 120_000:
            return _json({"error": "Invalid or expired nonce"}, 401)
        if codec.sign(TOKEN, payload) != headers["x-agent-signature"]:
            return _json({"error": "Invalid signature"}, 401)
        self._nonces.discard(nonce)
        self.writes.append((path, body))
        if path == "/api/threads":
            return _json({"thread": self._thread(body["title"], body["body"], body["type"], HANDLE)})
        *_, kind, id, what = path.split("/")
        if kind == "comments":
            return _json({"comment": {"id": id, "isIssued": True}})
        if self._found(id) is None:
            return _json({"error": "Thread not found"}, 404)
        if what == "comments":
            number = next(self._numbers)
            comment = {"id": f"ccomment{number:017}", "threadId": id, "body": body["body"].strip(), "author": HANDLE}
            self.comments.append({**comment, "createdAt": _now(), "kind": body.get("commentKind", "DISCUSSION")})
            return _json({"comment": comment})
        thread = self._found(id)
        assert thread is not None
        thread["isIssued" if what == "issued" else "isResolved"] = what == "issued" or body["status"] == "resolved"
        return _json({"thread": thread})

    def _thread(self, title: str, body: str, type: str, author: str) -> dict[str, Any]:
        id = f"cthread{next(self._numbers):018}"
        thread = {"id": id, "title": title.strip(), "body": body.strip(), "type": type, "author": author}
        self.threads.append({**thread, "createdAt": _now(), "isResolved": False, "isRejected": False})
        return self.threads[-1]

    def _found(self, id: str) -> dict[str, Any] | None:
        return next((thread for thread in self.threads if thread["id"] == id), None)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _json(body: Any, status: int = 200) -> Reply:
    return Reply([json.dumps(body).encode()], status=status, headers={"content-type": "application/json"})
