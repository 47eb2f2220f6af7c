"""A session's events, as they happen: from the log after the number that the reader has, then those that come.

Nobody waits for a reader. One that is slow is told what it missed (`gap`); one that reads nothing at all is cut off. A
reader stays with the session when its agent's program is started again, and loses nothing by it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import AsyncExitStack, suppress
from itertools import islice
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from trunkline.base import log_context
from trunkline.base.asgi_pulse import StreamPulse
from trunkline.base.asgi_write_now import WRITE_NOW, WriteNow, never
from trunkline.core.events import Envelope, Gap, last_seq
from trunkline.core.faults import Fault, SessionNotFound, StoreUnavailable
from trunkline.core.session import Session
from trunkline.exchange.api.auth import token_digest
from trunkline.exchange.api.broadcast import Backlog, Broadcast, StreamChunk, piece
from trunkline.exchange.api.endpoint import ApiCall, ApiEndpoint, number
from trunkline.exchange.api.sessions import row_of
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.live_session import LiveSession

#: How often is looked whether a stream was silent since the last time: then it says that it is alive. A sign of life at
#: least every 15 s is promised, so this is less than half of it.
HEARTBEAT_SECONDS = 7.0
#: After how long a reader that takes nothing is gone.
STALLED_SECONDS = 120.0
#: What is read from the log and sent at once, in bytes; and in events, after which others have their turn.
REPLAY_BYTES, REPLAY_EVENTS = 64 * 1024, 256

#: When to try again while the session's agent cannot be had.
RETRY_SECONDS = 5.0

MEDIA_TYPE = "text/event-stream"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_HELLO, _ALIVE = b": watching\n\n", b": alive\n\n"


class EventStreams:
    """The streams that are open, and how they are told to end: they would never end by themselves."""

    def __init__(self) -> None:
        self.drops = 0
        """How often a reader was too slow, of those that have left."""
        self.open: set[EventStream] = set()
        self.closing = asyncio.Event()
        """Set when all of them are to end."""
        self._feeds: dict[LiveSession, Broadcast] = {}

    @property
    def all_drops(self) -> int:
        """How often a reader was too slow."""
        return self.drops + sum(stream.backlog.drops for stream in self.open)

    def feed(self, live: LiveSession) -> Broadcast:
        """What all readers of a session share."""
        found = self._feeds.get(live)
        if found is None:
            found = Broadcast(live.session, lambda: self._over(live, found))
            if not found.is_over:
                self._feeds[live] = found
        return found

    def _over(self, live: LiveSession, feed: Broadcast | None) -> None:
        if self._feeds.get(live) is feed:
            del self._feeds[live]

    def add(self, stream: EventStream) -> None:
        """One more."""
        self.open.add(stream)
        if self.closing.is_set():
            stream.end()

    def discard(self, stream: EventStream) -> None:
        """One less."""
        self.open.discard(stream)
        self.drops += stream.backlog.drops

    def close(self) -> None:
        """End all of them, and those that come."""
        self.closing.set()
        for stream in self.open:
            stream.end()


class EventStream(Response):
    """One reader."""

    def __init__(self, call: ApiCall, streams: EventStreams, since: int) -> None:
        super().__init__(media_type=MEDIA_TYPE, headers=HEADERS)
        # Nobody knows how long it will be.
        del self.headers["content-length"]
        self.backlog = Backlog(call.id)
        self._exchange: Exchange = call.exchange
        self._session = call.id
        self._by = call.person.name
        self._wire = str(log_context.known("").get("wire", ""))
        self._streams = streams
        self._since = since
        self._people = call.exchange.people
        self._token_sha256 = token_digest(call.request.scope)
        self._wake = asyncio.Event()
        self._write_now: WriteNow = never
        self._is_waiting = False
        """Whether everything has been sent and the task waits for more."""
        self._is_fed = False
        """Whether more may come from the session as it is now at work."""
        self._over = False
        self._pulse = StreamPulse(self._wake.set, HEARTBEAT_SECONDS, STALLED_SECONDS)

    # A reader of a broadcast.

    def give(self, chunk: StreamChunk) -> None:
        """More events. A reader that keeps up gets them directly: waking its task would cost several times as much."""
        self._since = chunk.pieces[-1].last
        if self._is_unknown:
            self.end()
        elif self._is_waiting and not self.backlog and self._write_now(chunk.framed):
            self._pulse.said()
        else:
            self.backlog.put(chunk)
            self._wake.set()

    def ended(self) -> None:
        """The session is at work no more."""
        self._is_fed = False
        self._wake.set()

    def end(self) -> None:
        """Say nothing more, and hang up."""
        self._over = True
        self._wake.set()

    # An answer.

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        if scope["method"] == "HEAD":
            await send({"type": "http.response.body", "body": b""})
            return
        self._streams.add(self)
        self._write_now = scope.get("extensions", {}).get(WRITE_NOW, never)
        leaving = asyncio.create_task(self._leave(receive), name=f"reader of {self._session}")
        try:
            # One that is cut off gets no end: it must not take what it has for everything.
            async with self._pulse.beating():
                await self._pulse.send(send, _HELLO)
                await self._tell(send)
                await self._pulse.send(send, b"", more=False)
        finally:
            self._streams.discard(self)
            leaving.cancel()
            await asyncio.wait({leaving})

    async def _leave(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.end()

    async def _tell(self, send: Send) -> None:
        """Everything, as long as there is a session and a reader."""
        switchboard = self._exchange.switchboard
        # Nobody writes to the log while there is no agent: it is read once.
        is_read = False
        # A fault: the session was removed, or its log cannot be read. Whoever asks again is told.
        with suppress(Fault):
            while not self._over:
                try:
                    async with AsyncExitStack() as stack:
                        joining = switchboard.attached(self._session, by=self._by, wire=self._wire)
                        live = await self._unless_over(stack.enter_async_context(joining))
                        is_read = False
                        await self._tell_of(live, send)
                except SessionNotFound:
                    # Whoever comes back is told.
                    raise
                except Fault:
                    if self._exchange.cluster is not None:
                        # Who hangs up on a node that is cut off goes elsewhere.
                        self._exchange.cluster.check()
                    if not is_read:
                        await switchboard.awaited([self._session])
                        await self._tell_asleep(send)
                    is_read = True
                    await self._wait(send)
                    continue
                if switchboard.live(self._session) is live:
                    # It was not replaced: the exchange is about to end, or this stream.
                    return

    async def _unless_over(self, joining: Coroutine[Any, Any, LiveSession]) -> LiveSession:
        """Wait for something that may take as long as it likes: a session may be moving.

        Raises:
            StoreUnavailable: the stream ends before.
        """
        task = asyncio.ensure_future(joining)
        try:
            while not task.done() and not self._over:
                self._wake.clear()
                waking = asyncio.ensure_future(self._wake.wait())
                await asyncio.wait({task, waking}, return_when=asyncio.FIRST_COMPLETED)
                waking.cancel()
            if not task.done():
                raise StoreUnavailable("Nobody listens any more.")
            return task.result()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})

    async def _tell_asleep(self, send: Send) -> None:
        """What is in the log of a session whose agent cannot be had."""
        records = self._exchange.switchboard.peek(self._session).records
        while batch := await asyncio.to_thread(lambda: list(islice(records, REPLAY_EVENTS))):
            new = [item for item in batch if last_seq(item) > self._since and not _is_private(item)]
            if self._over or self._is_unknown:
                self.end()
                return
            if new:
                self._since = last_seq(new[-1])
                await self._pulse.send(send, b"".join([piece(self._session, item).data for item in new]))

    async def _wait(self, send: Send) -> None:
        """Give the agent some time to come back."""
        with suppress(TimeoutError):
            async with asyncio.timeout(RETRY_SECONDS):
                while not self._over and not self._pulse.is_due:
                    self._wake.clear()
                    await self._wake.wait()
        if self._is_unknown:
            self.end()
        elif self._pulse.is_due and not self._over:
            await self._pulse.send(send, _ALIVE)

    async def _tell_of(self, live: LiveSession, send: Send) -> None:
        feed, since = self._streams.feed(live), self._since
        self._is_fed = True
        after = feed.join(self)
        try:
            await self._replay(live.session, since, after, send)
            while self.backlog or self._is_fed:
                if not self.backlog and not self._pulse.is_due and not self._over:
                    self._wake.clear()
                    self._is_waiting = True
                    try:
                        await self._wake.wait()
                    finally:
                        self._is_waiting = False
                if self._over or self._is_unknown:
                    self._over = True
                    return
                if self.backlog:
                    await self._pulse.send(send, self.backlog.take())
                elif self._pulse.is_due:
                    await self._pulse.send(send, _ALIVE)
        finally:
            feed.leave(self)

    async def _replay(self, session: Session, since: int, until: int, send: Send) -> None:
        """What is in the log. What happens meanwhile waits in the backlog."""
        found, size = [], 0
        try:
            for item in session.read(since, until):
                made = piece(self._session, item)
                since = made.last
                found.append(made.data)
                size += len(made.data)
                if size >= REPLAY_BYTES or len(found) >= REPLAY_EVENTS:
                    if self._over:
                        return
                    await self._pulse.send(send, b"".join(found))
                    await asyncio.sleep(0)
                    found, size = [], 0
        except ValueError:
            # The log was closed in the middle.
            found.append(piece(self._session, Gap(since + 1, until)).data)
        if found and not self._over:
            await self._pulse.send(send, b"".join(found))
        self._since = max(self._since, since, until)

    @property
    def _is_unknown(self) -> bool:
        """Whether the reader's token counts no more: the configuration may have changed."""
        if self._people is self._exchange.people or not self._token_sha256:
            return False
        self._people = self._exchange.people
        return self._people.of_digest(self._token_sha256) is None


def _is_private(item: Envelope | Gap) -> bool:
    return isinstance(item, Envelope) and item.event.private


async def events(call: ApiCall) -> Any:
    """`GET /api/sessions/{id}/events`."""
    since = call.number("since", 0)
    # What a browser has seen since it was given the address.
    if (last := call.request.headers.get("last-event-id")) is not None:
        since = number("`Last-Event-ID`", last.strip(), 0)
    await row_of(call)
    return EventStream(call, call.request.app.state.streams, since or 0)


ENDPOINTS = (
    ApiEndpoint(
        "GET", "/api/sessions/{id}/events", events, "observer", "What happens in a session, as Server-Sent Events",
        query={"since": {"type": "integer", "minimum": 0}},
        answer={"type": "string", "contentMediaType": MEDIA_TYPE}, statuses=(404,),
    ),
)  # fmt: skip
