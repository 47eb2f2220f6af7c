"""ACP for clients elsewhere: one address for HTTP and for WebSockets, as the official SDKs' transports have it.

    POST    a message; `initialize` makes a connection and is answered at once, everything else by 202
    GET     what the agent says, as server-sent events: of the connection, or with `Acp-Session-Id` of one session
    DELETE  ends the connection
    GET with an upgrade to a WebSocket: all of it over one socket, a message in each text frame

A connection belongs to whoever opened it: for others it does not exist. How a token is checked, and who may do what, is
for whoever puts this behind an address.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Protocol
from urllib.parse import parse_qs

from trunkline.base.asgi_answers import Refused
from trunkline.base.lines import LineOutput
from trunkline.base.values import Value
from trunkline.core.fault_table import form_of
from trunkline.core.faults import Fault
from trunkline.wires import jsonrpc
from trunkline.wires.acp import codec
from trunkline.wires.acp.codec import JsonRpcError, RpcMessage

CONNECTION_HEADER = "Acp-Connection-Id"
SESSION_HEADER = "Acp-Session-Id"

#: Connections of one person: each has its own streams, and sessions that it keeps awake.
MAX_CONNECTIONS = 64
#: Unsent bytes beyond which the agent waits for a client.
MAX_UNREAD = 4 * 1024 * 1024
#: How long it does: longer than a client is busy with itself, and short for the others in the session.
PATIENCE_SECONDS = 5.0
#: A client that does not even wait for that, and asks for more than it reads, is cut off here.
MAX_UNSENT = 64 * 1024 * 1024
#: Between two signs of life in a stream with nothing to tell; and how often is looked whether its reader is still
#: welcome. Proxies give up after half a minute or more.
KEEPALIVE_SECONDS = 15.0

#: What people put into addresses, which are kept in logs and histories.
_SECRETS = ("token", "access_token", "api_key", "key", "authorization")

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Visitor(Value):
    """Who is there. `name` is whose connections are counted together, and whose they are."""

    name: str
    is_welcome: Callable[[], bool]
    """Whether they still are: tokens are taken back."""


class RemoteEnd(Protocol):
    """The agent's end of a connection."""

    def take(self, message: RpcMessage) -> None:
        """A message of the client."""

    async def knows(self, session_id: str) -> bool:
        """Whether there is such a session, which the client might load."""

    async def close(self) -> None:
        """The client is gone."""


#: Makes the agent's end for a visitor who names an agent, or none. Raises a `Fault` if that cannot be.
Connect = Callable[[Visitor, str | None, LineOutput], RemoteEnd]


class RemoteRefused(Refused):
    """A request that is not granted, and what is told as an error of JSON-RPC."""

    def __init__(self, status: int, message: str, code: int = jsonrpc.INVALID_REQUEST) -> None:
        super().__init__(status, message)
        self.fault: Fault = JsonRpcError(code, message)

    @classmethod
    def of(cls, fault: Fault) -> RemoteRefused:
        """The refusal that a fault amounts to."""
        made = cls(form_of(fault.kind).http, str(fault))
        made.fault = fault
        return made


class AcpRemote:
    """An ASGI application. Call `close` at the end."""

    def __init__(self, connect: Connect, visitor: Callable[[Scope], Visitor]) -> None:
        from trunkline.wires.acp.remote_http import HttpConnections
        from trunkline.wires.acp.remote_socket import SocketConnections

        self._visitor = visitor
        self._http = HttpConnections(connect, self.count)
        self._sockets = SocketConnections(connect, self.count)

    def count(self, visitor: str) -> int:
        """How many connections somebody has."""
        return self._http.count(visitor) + self._sockets.count(visitor)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            agent = _agent(scope)
            if scope["type"] == "websocket":
                await self._sockets.serve(self._visitor(scope), agent, receive, send)
            else:
                await self._http.serve(self._visitor(scope), agent, scope, receive, send)
        except Refused as refused:
            told = refused if isinstance(refused, RemoteRefused) else RemoteRefused(refused.status, refused.message)
            await answer(scope, send, refused.status, codec.encode_error(None, told.fault), refused.headers)

    async def close(self) -> None:
        """End all connections."""
        await self._sockets.close()
        await self._http.close()


async def answer(
    scope: Scope, send: Send, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None
) -> None:
    """Answer a request, or refuse the upgrade to a WebSocket."""
    kind = "websocket.http.response" if scope["type"] == "websocket" else "http.response"
    told = {"content-length": str(len(body)), **(headers or {})}
    if body:
        told["content-type"] = "application/json"
    raw = [(name.lower().encode(), value.encode()) for name, value in told.items()]
    await send({"type": f"{kind}.start", "status": status, "headers": raw})
    await send({"type": f"{kind}.body", "body": body})


async def caught_up(is_congested: Callable[[], bool], sent: asyncio.Event) -> bool:
    """Wait until a client is not congested; whether it came to that in time. `sent` is set when it has read more."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while is_congested():
                sent.clear()
                await sent.wait()
    except TimeoutError:
        return False
    return True


def room(count: int) -> None:
    """Go on only if somebody with so many connections may have one more.

    Raises:
        RemoteRefused: not now.
    """
    if count >= MAX_CONNECTIONS:
        raise RemoteRefused(429, f"You have {MAX_CONNECTIONS} connections, which is the limit. End one of them first.")


def _agent(scope: Scope) -> str | None:
    asked = parse_qs(scope.get("query_string", b"").decode("utf-8", "replace"), keep_blank_values=True)
    if any(name.lower() in _SECRETS for name in asked):
        raise RemoteRefused(
            400, "Addresses are kept in logs: send your token as `Authorization: Bearer TOKEN`, not in the address."
        )
    names = asked.get("agent", [])
    if len(names) > 1:
        raise RemoteRefused(400, "Name one agent: `?agent=NAME`.")
    return names[0] or None if names else None
