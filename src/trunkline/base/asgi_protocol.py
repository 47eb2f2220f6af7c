"""HTTP/1.1 with bounds on what uvicorn leaves open: how long heads and the rests of bodies may be and may take, and how
many connections there are.

Whoever connects and stays silent would keep a connection for ever. When there are too many, the one goes that has been
silent for the longest; who comes is not refused, unless all others are at work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from trunkline.base import jsontext
from trunkline.base.asgi_headers import NO_SNIFFING
from trunkline.base.asgi_write_now import WRITE_NOW

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

#: The longest head of a request: its first line and its headers.
MAX_HEAD = 64 * 1024
#: How long a head may take to arrive.
HEAD_SECONDS = 20.0
#: What is left of a request when the answer is given is read and thrown away, up to so much and so long: most clients
#: read the answer only after they have sent everything, and would lose it if the connection were closed before. It is
#: several times as much as any body may have here, so that whoever sends too much learns so.
MAX_REST = 256 * 1024 * 1024
REST_SECONDS = 5.0
#: When to try again while all connections are at work, in seconds.
_RETRY_SECONDS = 5

#: What is answered here is the last that is said.
_HEADERS = {"content-type": "application/json", **NO_SNIFFING, "connection": "close"}

#: Gives the members of the JSON object that tells of a refusal: its status, and why.
Refusal = Callable[[int, str], Mapping[str, Any]]


def plain(status: int, message: str) -> Mapping[str, Any]:
    """The reason alone."""
    return {"error": message}


class ConnectionLimit:
    """The connections of a server: how many there may be, and which of them are silent, longest first."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.silent: dict[BoundedHttp, None] = {}


class BoundedHttp(HttpToolsProtocol):
    """Closes a connection whose next request does not come to its body in time or within bounds."""

    def __init__(self, *args: Any, room: ConnectionLimit, refusal: Refusal = plain, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._room = room
        self._refusal = refusal
        self._bytes = 0
        """Of the head, or of what is left of a body."""
        self._timer: asyncio.TimerHandle | None = None
        """Runs while a head or the rest of a body is awaited."""
        self._in_rest = False
        self._last = False
        """Whether to close after the rest."""
        self._refused = False
        """Whether what comes is not looked at any more."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in the base class
        super().connection_made(transport)
        if len(self.connections) > self._room.most:
            if self._room.silent:
                next(iter(self._room.silent))._cut_off()
            else:
                self.app = partial(_busy, self._refusal)
        self._fall_silent()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._room.silent.pop(self, None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._refused:
            super().data_received(data)
        if self._timer is None:
            return
        self._bytes += len(data)
        if self._in_rest:
            if self._bytes > MAX_REST:
                self._cut_off()
        elif self._bytes > MAX_HEAD:
            self._refuse_head()

    def send_400_response(self, msg: str) -> None:
        self._tell(400, "Bad Request", msg)
        self.transport.close()

    def _refuse_head(self) -> None:
        """Say that a head is too long, unless another answer is on its way."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and not cycle.response_complete:
            self._cut_off()
            return
        self._refused = True
        self._room.silent.pop(self, None)
        self._tell(431, "Request Header Fields Too Large", f"The head of a request may have {MAX_HEAD} bytes at most.")
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._await_rest()

    def _tell(self, status: int, reason: str, message: str) -> None:
        """An answer to what is not a request, the last one."""
        body = jsontext.dumps(self._refusal(status, message))
        headers = {**_HEADERS, "content-length": len(body)}
        lines = (f"HTTP/1.1 {status} {reason}", *(f"{name}: {value}" for name, value in headers.items()), "", "")
        self.transport.write("\r\n".join(lines).encode() + body)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._start_timer(HEAD_SECONDS)

    def on_headers_complete(self) -> None:
        self._stop_timer()
        self._room.silent.pop(self, None)
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is before:
            # From here on a WebSocket has the connection, and there is no answer to finish.
            return
        self.cycle.transport = _Patient(self, self.cycle)  # type: ignore[assignment]  # what a cycle needs of one
        extensions: dict[str, Any] = {WRITE_NOW: partial(_write_now, self.cycle)}
        self.cycle.scope["extensions"] = extensions

    def on_message_complete(self) -> None:
        super().on_message_complete()
        if self._in_rest:
            if self._last:
                self.transport.close()
            self._fall_silent()

    def on_response_complete(self) -> None:
        waiting = bool(self.pipeline)
        if self._last:
            # It is about to close: nothing else is answered.
            self.flow.resume_reading()
            return
        super().on_response_complete()
        if self.transport.is_closing() or waiting:
            return
        if self.cycle.more_body:
            self._await_rest()
        else:
            self._fall_silent()

    def finish(self, cycle: RequestResponseCycle) -> None:
        """Close the connection after the answer, and not before the request has been read, within bounds."""
        if cycle.more_body and cycle is self.cycle and cycle.response_complete:
            self._last = True
            self._await_rest()
        else:
            self.transport.close()

    def _fall_silent(self) -> None:
        self._room.silent[self] = None
        # Whatever is sent that is no head does not keep the connection.
        self._start_timer(HEAD_SECONDS)

    def _await_rest(self) -> None:
        self._start_timer(REST_SECONDS)
        self._in_rest = True

    def _start_timer(self, seconds: float) -> None:
        self._stop_timer()
        self._bytes = 0
        self._timer = self.loop.call_later(seconds, self._cut_off)

    def _stop_timer(self) -> None:
        self._in_rest = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _cut_off(self) -> None:
        self._stop_timer()
        self._room.silent.pop(self, None)
        self.transport.abort()


class _Patient:
    """The transport as an answer sees it: to close it is to finish."""

    def __init__(self, protocol: BoundedHttp, cycle: RequestResponseCycle) -> None:
        self._protocol = protocol
        self._cycle = cycle
        self.write = protocol.transport.write
        self.is_closing = protocol.transport.is_closing

    def close(self) -> None:
        self._protocol.finish(self._cycle)


def _write_now(cycle: RequestResponseCycle, framed: bytes) -> bool:
    """See `asgi_write_now`."""
    if not cycle.chunked_encoding or cycle.response_complete or cycle.disconnected or cycle.flow.write_paused:
        return False
    cycle.transport.write(framed)
    return True


async def _busy(refusal: Refusal, scope: Any, receive: Any, send: Any) -> None:
    """Answers in the place of the application."""
    body = jsontext.dumps(refusal(503, "Too many connections. Try again later."))
    headers = {**_HEADERS, "retry-after": str(_RETRY_SECONDS), "content-length": str(len(body))}
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": 503, "headers": raw})
    await send({"type": "http.response.body", "body": body})
