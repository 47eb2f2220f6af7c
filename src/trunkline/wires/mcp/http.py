"""A server on the web: streamable HTTP, with sessions and streams that can be resumed, as an ASGI application."""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import JSONRPCMessage
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive, Scope, Send

from trunkline.base.asgi_answers import JSON, Refused, answer
from trunkline.base.asgi_body import bounded_body
from trunkline.core.faults import InternalError
from trunkline.wires import jsonrpc
from trunkline.wires.mcp import codec, http_sessions
from trunkline.wires.mcp.offer import Offer
from trunkline.wires.mcp.serve import Client, Context, mcp_server

#: After how long without a request an MCP session is forgotten. Its client begins a new one; conversations are kept.
IDLE_SECONDS = 30 * 60
#: MCP sessions at once, of all people. Each is a task and a few streams.
MOST_SESSIONS = 1000
#: Messages of one MCP session that are kept for a client that lost its connection.
REPLAYED = 256
#: How long a body may take.
BODY_SECONDS = 30.0
#: How soon a client whose stream has ended comes back, if it listens to that.
RETRY_MILLISECONDS = 1000

#: How long requests may take for their answers when the server ends: those that were stopped have them at once.
LAST_ANSWER_SECONDS = 1.0

_OK = 200
_SESSION = "mcp-session-id"
_CLIENT = "trunkline.mcp.client"


class McpHttp:
    """What is offered, as an ASGI application. `start` it in the loop that serves it, and `close` it there.

    It checks neither tokens nor hosts, unless by `security`: whoever serves it says whose request it is.
    """

    def __init__(self, offer: Offer, security: TransportSecuritySettings | None = None) -> None:
        self._manager = _SessionManager(
            mcp_server(offer, _client_of),
            security_settings=security,
            session_idle_timeout=IDLE_SECONDS,
            retry_interval=RETRY_MILLISECONDS,
            max_request_body_size=codec.MAX_LINE,
            max_sessions=MOST_SESSIONS,
        )
        self._shares = http_sessions.SessionShares()
        self._under_way: set[asyncio.Future[None]] = set()
        """Requests that will have an answer, unlike streams that are only listened to."""
        self._is_ending = False
        self._ending = asyncio.Event()
        self._started: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Be ready for requests."""
        self._started = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(), name="MCP over HTTP")
        await asyncio.wait({self._started, self._task}, return_when=asyncio.FIRST_COMPLETED)

    def end(self) -> None:
        """Take no more requests. Those that are under way go on."""
        self._is_ending = True

    async def close(self) -> None:
        """End every request and every session. Requests whose answers are near have them."""
        self.end()
        if self._under_way:
            await asyncio.wait(set(self._under_way), timeout=LAST_ANSWER_SECONDS)
        self._ending.set()
        if self._task is not None:
            await asyncio.wait({self._task})

    async def __call__(self, scope: Scope, receive: Receive, send: Send, client: Client) -> None:
        """Answer a request of a client."""
        # The SDK refuses an MCP session to everybody but the user who began it, as if there were none.
        token = AccessToken(token="", client_id=client.who, scopes=[])
        scope = {**scope, "user": AuthenticatedUser(token), _CLIENT: client}
        request = Request(scope, receive)
        try:
            if self._is_ending:
                raise Refused(503, "The server is ending. Try again when it runs again")
            if request.method != "POST":
                await self._pass_on(request, receive, send, client.who)
                return
            message, body = await _message(request)
            with self._answering():
                await self._take(request, message, _again(body, receive), send, client.who)
        except Refused as refused:
            broken = codec.BrokenMessage(jsonrpc.INVALID_REQUEST, f"{refused.message}.")
            await answer(codec.error_message(broken), refused.status, refused.headers)(scope, receive, send)
        except ClientDisconnect:
            return

    async def _take(
        self, request: Request, message: dict[str, Any] | codec.BrokenMessage, receive: Receive, send: Send, who: str
    ) -> None:
        if isinstance(message, codec.BrokenMessage):
            await answer(codec.error_message(message), 400)(request.scope, receive, send)
        elif message.get("method") == "initialize" and _SESSION not in request.headers:
            await self._begin(request, receive, send, who)
        else:
            await self._pass_on(request, receive, send, who)

    @contextmanager
    def _answering(self) -> Iterator[None]:
        mark = asyncio.get_running_loop().create_future()
        self._under_way.add(mark)
        try:
            yield
        finally:
            self._under_way.discard(mark)
            mark.set_result(None)

    async def _begin(self, request: Request, receive: Receive, send: Send, who: str) -> None:
        """A new MCP session, in the place of an old one if the person has too many."""
        for session in self._shares.surplus(who):
            await self._end_session(request.scope, session, who)
        if self._shares.is_full(who):
            raise Refused(
                503, f"You have {http_sessions.MOST_OF_ONE} MCP sessions that are in use. End one of them first"
            )
        place = secrets.token_hex(8)
        self._shares.begun(who, place)

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == _OK:
                self._shares.begun(who, Headers(raw=message["headers"])[_SESSION])
            await send(message)

        try:
            with self._shares.using(who, place):
                await self._manager.asgi_app(request.scope, receive, watched)
        finally:
            self._shares.ended(who, place)

    async def _pass_on(self, request: Request, receive: Receive, send: Send, who: str) -> None:
        session = request.headers.get(_SESSION, "")
        with self._shares.using(who, session):
            await self._manager.asgi_app(request.scope, receive, send)
        if request.method == "DELETE":
            self._shares.ended(who, session)

    async def _end_session(self, scope: Scope, session: str, who: str) -> None:
        """End a session as its client would have."""
        kept = [(name, value) for name, value in scope["headers"] if name in (b"host", b"accept", b"origin")]
        headers = [*kept, (_SESSION.encode(), session.encode())]
        request = Request({**scope, "method": "DELETE", "headers": headers}, _no_body)
        await self._pass_on(request, _no_body, _unheard, who)

    async def _run(self) -> None:
        """The SDK wants its context to be entered and left by one task."""
        async with self._manager.run():
            if self._started is not None and not self._started.done():
                self._started.set_result(None)
            await self._ending.wait()


async def _message(request: Request) -> tuple[dict[str, Any] | codec.BrokenMessage, bytes]:
    """The message that a request is, and its bytes. What is none must be told so by JSON-RPC's own numbers.

    Raises:
        Refused: it is of another type, is too large, or did not arrive.
        ClientDisconnect: nobody waits for an answer.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise Refused(415, f"Send `Content-Type: {JSON}`")
    body = await bounded_body(request, codec.MAX_LINE, BODY_SECONDS)
    message = codec.decode(body)
    if isinstance(message, dict) and "error" in message:
        # An answer that says nothing has become one.
        body = codec.encode(message)
    return message, body


async def _no_body() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _unheard(message: Message) -> None:
    pass


def _again(body: bytes, receive: Receive) -> Receive:
    """A body that was read, to be read again; then whatever comes."""
    rest: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return rest.pop() if rest else await receive()

    return receive_again


def _client_of(context: Context) -> Client:
    if context.request is None:
        raise InternalError("A request without one of HTTP.")
    client: Client = context.request.scope[_CLIENT]
    return client


class _SessionManager(StreamableHTTPSessionManager):
    """The SDK's, but each MCP session has a store of its own: the SDK's names of streams are those of the requests,
    which clients choose, and one client's must not be another's."""

    @property
    def event_store(self) -> EventStore:
        return RecentEvents()

    @event_store.setter
    def event_store(self, _: EventStore | None) -> None:
        pass


class RecentEvents(EventStore):
    """The last messages of one MCP session, for a client that lost its connection."""

    def __init__(self) -> None:
        self._events: OrderedDict[str, tuple[str, JSONRPCMessage | None]] = OrderedDict()

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        event_id = secrets.token_hex(8)
        self._events[event_id] = (stream_id, message)
        if len(self._events) > REPLAYED:
            self._events.popitem(last=False)
        return event_id

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        if last_event_id not in self._events:
            return None
        stream_id = self._events[last_event_id][0]
        after: list[tuple[str, Any]] = []
        for event_id in reversed(self._events):
            if event_id == last_event_id:
                break
            after.append((event_id, self._events[event_id]))
        for event_id, (stream, message) in reversed(after):
            if stream == stream_id and message is not None:
                await send_callback(EventMessage(message, event_id))
        return stream_id
