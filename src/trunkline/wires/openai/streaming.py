"""An answer over HTTP, as it is being given, or whole; until the client has it or is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from trunkline.base.asgi_pulse import StreamPulse
from trunkline.base.asgi_write_now import WRITE_NOW, WriteNow, never
from trunkline.wires.openai.codec import ALIVE
from trunkline.wires.openai.errors import stopping
from trunkline.wires.openai.messages import SESSION_HEADER
from trunkline.wires.openai.turn import AnsweringTurn

#: How often is looked whether a stream was silent since the last time: then it says that it is alive. A sign of life at
#: least every 15 s is promised, so this is less than half of it.
HEARTBEAT_SECONDS = 7.0
#: After how long a client that takes nothing is gone.
STALLED_SECONDS = 60.0
#: What a client may be behind before its agent waits for it: some seconds of a fast model's words.
BEHIND_BYTES = 256 * 1024
#: What is kept at most for a client for which nobody waits, because others share the session.
MOST_BEHIND_BYTES = 16 * 1024 * 1024

#: Words that follow each other more closely are written together: most of the cost of a word is that of writing it. The
#: first one after a pause is never held.
REST_SECONDS = 0.002

MEDIA_TYPE = "text/event-stream"
_HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}


class OpenTurns:
    """The turns that clients wait for, so that a server that stops can end them; and those that nobody waits for."""

    def __init__(self) -> None:
        self._turns: set[AnsweringTurn] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def check(self) -> None:
        """See that one more may be begun.

        Raises:
            OpenAIRefused: the server is about to end.
        """
        if self._closed:
            raise stopping()

    def add(self, turn: AnsweringTurn) -> None:
        """One more."""
        self._turns.add(turn)
        if self._closed:
            turn.end()

    async def leave(self, turn: AnsweringTurn) -> None:
        """One less. It is left to its end, whatever becomes of who waits here."""
        self._turns.discard(turn)
        task = asyncio.create_task(turn.leave(), name="leave a session")
        self._keep(task)
        await asyncio.shield(task)

    def in_background(self, turn: AnsweringTurn) -> None:
        """Keep a seat until the turn has ended, although nobody waits for it."""

        async def stay() -> None:
            try:
                await turn.over.wait()
            finally:
                await self.leave(turn)

        self._keep(asyncio.create_task(stay(), name="a response in the background"))

    def close(self) -> None:
        """End all of them, and those that come."""
        self._closed = True
        for turn in tuple(self._turns):
            turn.end()

    async def closed(self) -> None:
        """Wait until all of them were left."""
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def gone(receive: Receive) -> None:
    """Wait until the client has hung up."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def waited(turn: AnsweringTurn, receive: Receive) -> bool:
    """Wait for the end of a turn; whether the client does, too."""
    leaving = asyncio.create_task(gone(receive), name="client of a turn")
    ending = asyncio.create_task(turn.over.wait(), name="end of a turn")
    try:
        await asyncio.wait({leaving, ending}, return_when=asyncio.FIRST_COMPLETED)
        return ending.done()
    finally:
        leaving.cancel()
        ending.cancel()
        await asyncio.wait({leaving, ending})


class AnswerStream(Response):
    """Server-Sent Events of one turn. Whoever makes it gives it to `AnsweringTurn.begin`, as `give`."""

    def __init__(self, turn: AnsweringTurn, turns: OpenTurns, headers: Mapping[str, str], *, detached: bool) -> None:
        """`detached`: the turn goes on when the client leaves."""
        super().__init__(media_type=MEDIA_TYPE, headers={**headers, **_HEADERS})
        # Nobody knows how long it will be.
        del self.headers["content-length"]
        self._turn = turn
        self._turns = turns
        self._detached = detached
        self._backlog: list[bytes] = []
        self._size = 0
        self._wake = asyncio.Event()
        self._write_now: WriteNow = never
        self._is_waiting = False
        """Whether everything has been sent and the task waits for more."""
        self._loop = asyncio.get_running_loop()
        self._rested = 0.0
        """When more may be written, by the loop's clock."""
        self._flushing: asyncio.TimerHandle | None = None
        self._gone = False
        self._pulse = StreamPulse(self._wake.set, HEARTBEAT_SECONDS, STALLED_SECONDS)

    def give(self, data: bytes) -> None:
        """More of the answer. A client that keeps up gets it directly: waking its task would cost far more."""
        if not data or self._gone:
            return
        self._backlog.append(data)
        self._size += len(data)
        if self._flushing is None:
            if not self._is_waiting:
                self._wake.set()
            elif self._loop.time() < self._rested:
                self._flushing = self._loop.call_at(self._rested, self._flush)
            else:
                self._flush()
        if self._size > MOST_BEHIND_BYTES:
            self._leave()
        elif self._size > BEHIND_BYTES:
            self._turn.hold(True)

    def _flush(self) -> None:
        self._flushing = None
        if not self._backlog:
            return
        data = b"".join(self._backlog)
        if self._is_waiting and self._write_now(b"%x\r\n%b\r\n" % (len(data), data)):
            self._forget_backlog()
            self._rested = self._loop.time() + REST_SECONDS
        else:
            self._wake.set()

    def _forget_backlog(self) -> None:
        self._backlog.clear()
        self._size = 0
        self._pulse.said()
        if self._turn.congested:
            self._turn.hold(False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._write_now = scope.get("extensions", {}).get(WRITE_NOW, never)
        leaving = asyncio.create_task(self._await_leaving(receive), name="client of a stream")
        ending = asyncio.create_task(self._await_end(), name="end of a streamed turn")
        try:
            # One that is cut off gets no end: it must not take what it has for everything.
            async with self._pulse.beating():
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                await self._tell(send)
        finally:
            if self._flushing is not None:
                self._flushing.cancel()
            leaving.cancel()
            ending.cancel()
            self._leave()
            await asyncio.wait({leaving, ending})
            if self._detached:
                self._turns.in_background(self._turn)
            else:
                await self._turns.leave(self._turn)

    async def _tell(self, send: Send) -> None:
        while not self._gone:
            if not self._backlog and not self._pulse.is_due:
                if self._turn.over.is_set():
                    await self._pulse.send(send, b"", more=False)
                    return
                self._wake.clear()
                self._is_waiting = True
                try:
                    await self._wake.wait()
                finally:
                    self._is_waiting = False
            if self._backlog:
                data = b"".join(self._backlog)
                self._backlog.clear()
                await self._pulse.send(send, data)
                # Only now: what is on its way counts, too.
                self._size = sum(map(len, self._backlog))
                if self._turn.congested and self._size <= BEHIND_BYTES:
                    self._turn.hold(False)
            elif self._pulse.is_due and not self._gone:
                await self._pulse.send(send, ALIVE)

    async def _await_leaving(self, receive: Receive) -> None:
        await gone(receive)
        self._leave()

    async def _await_end(self) -> None:
        await self._turn.over.wait()
        self._wake.set()

    def _leave(self) -> None:
        self._gone = True
        self._turn.hold(False)
        self._wake.set()


def session_headers(session: str | None, id: str) -> Mapping[str, str]:
    """What an answer tells of its session, if it has one that is kept. A header carries bytes: an id's are UTF-8."""
    found = {"x-request-id": id.encode("ascii", "replace").decode()}
    if session is not None:
        found[SESSION_HEADER.lower()] = session.encode("utf-8", "replace").decode("latin-1")
    return found
