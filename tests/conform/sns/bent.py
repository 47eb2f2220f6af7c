"""A way to a network that bends what passes: how a network with a bad habit looks from outside."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import httpx

from trunkline.base import jsontext
from trunkline.wires.sns import codec

AUTH = ("x-agent-nonce", "x-agent-timestamp", "x-agent-signature")


class Reply(NamedTuple):
    """An answer."""

    status: int
    data: Any = None
    headers: Mapping[str, str] = {"content-type": "application/json"}

    @property
    def error(self) -> str:
        return str(self.data.get("error", "")) if isinstance(self.data, dict) else ""


class Asked:
    """A request on its way, and what can be done with it."""

    def __init__(self, request: httpx.Request, inner: httpx.AsyncBaseTransport, tokens: Mapping[str, str]) -> None:
        self.method = request.method
        self.path = request.url.path
        self.query = request.url.query.decode()
        self.headers = {name: value for name, value in request.headers.items() if name != "content-length"}
        self.content = request.content
        self.tokens = tokens
        """The token of each agent that is known."""
        self._inner = inner

    @property
    def is_signed(self) -> bool:
        return "x-agent-signature" in self.headers

    async def forward(self) -> Reply:
        """What the network itself says."""
        return await self._send(self.method, self.path, self.headers, self.content)

    async def resigned(self, **members: Any) -> Reply:
        """What it would say to the same request, well signed, with some members of the body changed."""
        agent_id = self.headers.get("x-agent-id") or "nobody"
        token = self.tokens.get(agent_id) or self.headers.get("x-runner-token", "")
        credential = {"x-agent-id": agent_id, "x-runner-token": token}
        nonce = (await self._send("POST", "/api/agents/nonce", credential, b"")).data["nonce"]
        sent = self.headers.get("x-agent-timestamp", "")
        now = sent if sent.isdecimal() else str(time.time_ns() // 1_000_000)
        body = codec.parse_body(self.content)
        if members:
            body |= members
        signature = codec.sign(token, codec.payload(nonce, now, codec.body_hash(body), agent_id))
        headers = {**credential, **dict(zip(AUTH, (nonce, now, signature), strict=True))}
        return await self._send(self.method, self.path, headers, jsontext.dumps(body))

    def signature(self, *parts: str, key: str | None = None) -> str:
        """The signature of other parts, or with another key."""
        return codec.sign(self.headers["x-runner-token"] if key is None else key, ".".join(parts))

    @property
    def parts(self) -> tuple[str, str, str, str]:
        """What should be signed."""
        hashed = codec.body_hash(codec.parse_body(self.content))
        return self.headers["x-agent-nonce"], self.headers["x-agent-timestamp"], hashed, self.headers["x-agent-id"]

    async def _send(self, method: str, path: str, headers: Mapping[str, str], content: bytes) -> Reply:
        url = httpx.URL("http://localhost").copy_with(path=path, query=self.query.encode())
        request = httpx.Request(method, url, headers=dict(headers), content=content)
        response = await self._inner.handle_async_request(request)
        body = await response.aread()
        return Reply(response.status_code, jsontext.loads(body) if body else None, dict(response.headers))


Bend = Callable[[Asked], Awaitable[Reply]]


class Bent(httpx.AsyncBaseTransport):
    """The way."""

    def __init__(self, inner: httpx.AsyncBaseTransport, bend: Bend, tokens: Mapping[str, str]) -> None:
        self._inner = inner
        self._bend = bend
        self._tokens = tokens

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        reply = await self._bend(Asked(request, self._inner, self._tokens))
        headers = {name: value for name, value in reply.headers.items() if name != "content-length"}
        content = reply.data if isinstance(reply.data, bytes) else jsontext.dumps(reply.data)
        return httpx.Response(reply.status, headers=headers, stream=httpx.ByteStream(content))
