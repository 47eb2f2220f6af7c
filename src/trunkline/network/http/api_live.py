"""Live updates: hints as server-sent events, for a community or for all. A reader that gets one reads anew."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from trunkline.base import jsontext
from trunkline.base.asgi_answers import Refused
from trunkline.network import feeds
from trunkline.network.http.clients import Clients
from trunkline.network.http.endpoint import Endpoint
from trunkline.network.live import Hint, Watcher
from trunkline.network.network import Network
from trunkline.network.numbers import count
from trunkline.store.database import DatabaseGone

#: How often a silent stream says that it is alive: sooner than proxies give up, which is after 30 s or so.
HEARTBEAT_SECONDS = 15
#: How long one stream lasts. A browser connects again by itself.
MAX_SECONDS = 3600
#: Streams at once. Each holds a connection.
MAX_STREAMS = 500
#: Of one client: many tabs of several people behind one address, and a small part of all.
MAX_PER_CLIENT = 20
#: What a browser waits before it connects again, in milliseconds.
_RETRY_MS = 3000
#: Digits of a number that none of ours has.
_MAX_DIGITS = 19
#: When to try again while too many watch, in seconds.
_RETRY_SECONDS = "30"

#: What a browser sends when it connects again: the number of the last hint that it got.
_LAST = "last-event-id"
_MEDIA_TYPE = "text/event-stream"
_HEADERS = {"X-Accel-Buffering": "no"}


class Streams:
    """The streams that are open, and how they are told to end: they would never end by themselves."""

    def __init__(self, clients: Clients | None = None) -> None:
        self.clients = clients or Clients()
        self._open: set[asyncio.Event] = set()
        self._of: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._open)

    def room_for(self, client: str) -> None:
        """See that a client may have one more.

        Raises:
            Refused: 429, it has too many; 503, all together have.
        """
        if self._of[client] >= MAX_PER_CLIENT:
            told = f"You watch {MAX_PER_CLIENT} times already. Close some of your pages."
            raise Refused(429, told, {"Retry-After": _RETRY_SECONDS})
        if len(self) >= MAX_STREAMS:
            raise Refused(503, "Too many watch already. Try again later.", {"Retry-After": _RETRY_SECONDS})

    @contextmanager
    def one(self, client: str) -> Iterator[asyncio.Event]:
        """Count as open until the block is left. What it gives is set when it is time to leave."""
        closing = asyncio.Event()
        self._open.add(closing)
        self._of[client] += 1
        try:
            yield closing
        finally:
            self._open.discard(closing)
            self._of[client] -= 1
            if not self._of[client]:
                del self._of[client]

    def close(self) -> None:
        """End all of them."""
        for closing in self._open:
            closing.set()


async def all_events(network: Network, request: Request) -> Response:
    """`GET /api/events`."""
    return _stream(network, request, None)


async def community_events(network: Network, request: Request) -> Response:
    """`GET /api/communities/{slug}/events`."""
    slug = request.path_params["slug"]
    community_id: str = await network.database.read(lambda tx: feeds.community(tx, slug)["id"])
    return _stream(network, request, community_id)


def _stream(network: Network, request: Request, community_id: str | None) -> Response:
    if request.method == "HEAD":
        return Response(media_type=_MEDIA_TYPE, headers=_HEADERS)
    streams: Streams = request.app.state.streams
    client = streams.clients.name(request)
    streams.room_for(client)
    seconds = count(request.query_params.get("seconds"), MAX_SECONDS, MAX_SECONDS)
    last = _number(request.headers.get(_LAST, ""))
    return _Stream(streams, client, lambda closing: _events(network, community_id, closing, seconds, last))


def _number(said: str) -> int | None:
    # No longer than a number of the database.
    return int(said) if said.isascii() and said.isdecimal() and len(said) < _MAX_DIGITS else None


class _Stream(StreamingResponse):
    """Counts as open from its first moment: before it has sent anything, and before another one is asked for."""

    def __init__(self, streams: Streams, client: str, events: Callable[[asyncio.Event], AsyncIterator[bytes]]) -> None:
        self._streams, self._client, self._events = streams, client, events
        super().__init__((), media_type=_MEDIA_TYPE, headers=_HEADERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._streams.one(self._client) as closing:
            self.body_iterator = self._events(closing)
            await super().__call__(scope, receive, send)


async def _events(
    network: Network, community_id: str | None, closing: asyncio.Event, seconds: float, last: int | None = None
) -> AsyncIterator[bytes]:
    """The stream; `last` is the number of the last hint that its reader got, from this server or another one."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    with network.live.watching(community_id) as watcher:
        try:
            missed = await network.live.since(community_id, last)
        except DatabaseGone:
            # Whoever reads comes again, and then nothing is missing.
            return
        yield f"retry: {_RETRY_MS}\n\n".encode()
        for hint in missed:
            yield _event(hint)
        told = max((hint.number or 0 for hint in missed), default=0)
        while not closing.is_set() and (left := end - loop.time()) > 0:
            next_hint = await _next(watcher, closing, min(HEARTBEAT_SECONDS, left))
            if next_hint is None:
                yield b": alive\n\n"
            elif next_hint.number is None or next_hint.number > told:
                yield _event(next_hint)


async def _next(watcher: Watcher, closing: asyncio.Event, seconds: float) -> Hint | None:
    """The next hint; None if none comes in time, or the server is about to end."""
    coming, closed = asyncio.ensure_future(watcher.next()), asyncio.ensure_future(closing.wait())
    try:
        await asyncio.wait({coming, closed}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return coming.result() if coming.done() else None
    finally:
        coming.cancel()
        closed.cancel()


def _event(hint: Hint) -> bytes:
    data = jsontext.dumps({"communityId": hint.community_id, **hint.data})
    number = b"" if hint.number is None else b"\nid: %d" % hint.number
    return b"event: " + hint.kind.encode() + b"\ndata: " + data + number + b"\n\n"


_QUERY = {"seconds": f"How long the stream lasts: by default, and at most, {MAX_SECONDS}."}
_ANSWER = {"type": "string", "contentMediaType": _MEDIA_TYPE}

ENDPOINTS = (
    Endpoint(
        "GET", "/api/events", all_events, "none", "Watch all communities", "readers",
        query=_QUERY, answer=_ANSWER, statuses=(429,),
    ),
    Endpoint(
        "GET", "/api/communities/{slug}/events", community_events, "none", "Watch a community", "readers",
        query=_QUERY, answer=_ANSWER, statuses=(404, 429),
    ),
)  # fmt: skip
