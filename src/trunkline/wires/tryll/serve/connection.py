"""One connection of a Tryll server: bytes in, frames out, and when to stop.

What is sent in one round of the event loop goes out in one write. A client that does not read is not read either: when
it is behind, its frames wait, its turns wait, and nobody else's do. One that stays behind is cut off.
"""

from __future__ import annotations

import asyncio
import fcntl
import socket
import struct
import sys
import termios
from asyncio.trsock import TransportSocket
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from trunkline.wires.tryll.codec import FrameError, Framer, FrameTooLarge, decode
from trunkline.wires.tryll.fitting import frames
from trunkline.wires.tryll.messages import PROTOCOL_VERSION, ErrorResponse, Message, SessionReady
from trunkline.wires.tryll.serve.session import ClientSession

if TYPE_CHECKING:
    from trunkline.wires.tryll.serve import TryllServer

#: What the server can do beyond the documented protocol.
EXTENSIONS = (
    "cancel", "history", "health", "usage", "barge_in", "records", "generation", "timings", "memory", "director",
)  # fmt: skip

#: Unsent bytes at which a client is behind: as much as a long answer, so that hardly any model waits for a reader.
HIGH_WATER = 256 * 1024
#: And at which it is not any more.
LOW_WATER = 64 * 1024
#: Bytes that are written at once rather than kept for the end of the round.
_WRITE = 64 * 1024
#: Frames after which others have their turn, however many came at once.
_SHARE = 128
#: And seconds after which they have it, however few frames that were. Looked at before each frame that is not small,
#: and each eighth: to look at the clock takes a tenth of the time of a small one. Small ones that ask for much are
#: the last of their share by themselves (`Desk.pause`).
_SHARE_SECONDS = 0.005
_SMALL = 512
_FEW = 7
#: Turns that go on at once when a client has caught up: the first of them may fill it again, and thousands may wait.
_WAKES = 16
#: How often we look whether a client that is behind has taken anything, in the time that it has for that.
_LOOKS = 10
#: How long the end of a session may take, with what is still to be sent. Five seconds are promised.
END_SECONDS = 4.0
#: How long we wait for the client to close after us. Until then it can still read what we said.
LINGER_SECONDS = 1.0

#: To close like this tells the peer that something is missing.
_RESET = struct.pack("ii", 1, 0)


class ServerConnection(asyncio.BufferedProtocol):
    """Connects a transport and a session. `behind`: the client does not read what it is sent."""

    __slots__ = ("_backlog", "_closed", "_corked", "_deadline", "_ending", "_eof", "_framer", "_out", "_owed", "_size",
                 "_taken_at", "_timer", "_tls", "_too_large", "_waiters", "admitted", "bearer", "behind", "id",
                 "server", "session", "transport")  # fmt: skip

    transport: asyncio.Transport

    def __init__(self, server: TryllServer) -> None:
        self.server = server
        self.id = 0
        self.admitted = False
        """Whether it counts among those that there is room for."""
        self.session: ClientSession | None = None
        self.bearer = ""
        """A token that came with the connection itself, where that has a place for it."""
        self.behind = False
        self._framer: Framer | None = None
        self._backlog: list[bytes] | None = None
        self._too_large: FrameTooLarge | None = None
        self._waiters: deque[asyncio.Future[None]] | None = None
        self._out: list[bytes] = []
        self._size = 0
        self._owed = 0
        """Bytes that the client had not taken when we looked last, and those that came since, while it is behind."""
        self._taken_at = 0.0
        """When it was seen to take something, while it is behind."""
        self._closed = self._corked = self._ending = self._eof = self._tls = False
        self._timer: asyncio.TimerHandle | None = None
        self._deadline: asyncio.TimerHandle | None = None
        """When a session with a token must be configured."""

    # The transport's side.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # TCP has both ends
        self.transport = transport
        transport.set_write_buffer_limits(HIGH_WATER, LOW_WATER)
        # A transport that is closed does not tell any more.
        self._tls = transport.get_extra_info("sslcontext") is not None
        self.server.entered(self)
        self._greet()

    def _greet(self) -> None:
        """Begin the session."""
        self.say(SessionReady(PROTOCOL_VERSION, self.id, self.server.extensions))
        self.flush()
        if self.server.stopping:
            self.server.refused("stopping")
            self.stop()
        elif self.server.settings.token:
            # Whoever has not said it takes nobody's place, and does not stay.
            self._deadline = self._later(self.server.settings.frame_seconds, self._not_configured)
        else:
            self.admit()

    def admit(self, request_id: int = 0) -> bool:
        """Count this client among those that there is room for, or refuse it. Idempotent."""
        if self.admitted or self.server.admits(self):
            return True
        most = self.server.settings.max_clients
        self.refuse(2001, f"This server takes at most {most} connections, and has them: try again later.", request_id)
        return False

    def configured(self) -> None:
        """The session has all the time that it wants."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _not_configured(self) -> None:
        self.server.refused("token")
        seconds = self.server.settings.frame_seconds
        self.refuse(2002, f"The session was not configured, with the token, within {seconds:g} s.")

    def get_buffer(self, sizehint: int) -> memoryview:
        # All connections have the same: what was read is taken out before anybody else reads. Without it asyncio would
        # make one of this size for each read, which takes longer than the reading.
        return self.server.buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self._ending:
            return
        data = bytes(self.server.buffer[:nbytes])
        if self._framer is None:
            self._framer = Framer()
        found: Sequence[bytes]
        try:
            found = self._framer.feed(data)
        except FrameTooLarge as error:
            # Without its traceback, which has all that was read, and us.
            found, self._too_large = error.frames, error.with_traceback(None)
        self._received(found, self._framer.held > 0)

    def _received(self, found: Sequence[bytes], unfinished: bool) -> None:
        """Some payloads have come, and perhaps the beginning of another one."""
        self.server.unfinished(self, unfinished, bool(found))
        if self._backlog is not None:
            self._backlog += found
        else:
            self._take(found)

    def eof_received(self) -> bool:
        """The client will say nothing more: that ends the session, and what it is still owed is sent."""
        self._eof = True
        if self._closed:
            # It was us who ended, and all is said.
            self._close()
        self.end()
        # Without TLS the other half stays open until everything is sent.
        return not self._tls

    def pause_writing(self) -> None:
        self.behind = True
        if self._timer is None:
            self._taken_at = self.server.loop.time()
            self._watch(_untaken(self.transport))

    def _watch(self, untaken: int) -> None:
        self._owed = untaken
        self._timer = self._later(self.server.settings.stall_seconds / _LOOKS, self._look)

    def _look(self) -> None:
        """The client has been behind for a while. One that reads, if slowly, is waited for."""
        untaken, now = _untaken(self.transport), self.server.loop.time()
        if untaken < self._owed:
            self._taken_at = now
        if now - self._taken_at < self.server.settings.stall_seconds:
            self._watch(untaken)
        else:
            self.cut()

    def resume_writing(self) -> None:
        self.behind = False
        if not self._ending and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._wake()
        self.go_on()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ending = self._closed = True
        self.behind = False
        self.configured()
        # Things that know each other go late, and so would what is large.
        self._backlog = self._framer = self._too_large = None
        self._out.clear()
        if self._timer is not None:
            self._timer.cancel()
        self.server.left(self)
        if self.session is not None:
            self.session.lost()
        self._wake()

    # Frames in.

    def _take(self, found: Sequence[bytes]) -> None:
        session = self.session
        if session is None:
            session = self.session = ClientSession(self)
        self._corked = True
        handle = session.handle
        time = self.server.loop.time
        # One alone has all the time that it takes.
        until = time() + _SHARE_SECONDS if len(found) > 1 else 0.0
        late = False
        for taken, payload in enumerate(found):
            size = len(payload)
            if (size > _SMALL or taken & _FEW == _FEW) and taken:
                late = time() > until
            if self.behind or session.crowded or late or taken == _SHARE:
                self._backlog = list(found[taken:])
                self.transport.pause_reading()
                self.server.not_reading(self)
                if late or taken == _SHARE:
                    # As a timer: those come after the sockets that others have written to, and what is due at once
                    # would come before them.
                    self.server.loop.call_later(0, self.go_on)
                break
            try:
                message = self._read(payload)
            except FrameError as error:
                self.say(ErrorResponse(error.request_id, error.code, str(error)))
                continue
            handle(message, size)
            if self._ending:
                break
        else:
            if self._too_large is not None:
                self.refuse(self._too_large.code, str(self._too_large))
        self._corked = False
        self.flush()

    def _read(self, payload: bytes) -> Message:
        """The message in a payload.

        Raises:
            FrameError: there is none.
        """
        return decode(payload)

    def go_on(self) -> None:
        """Take up what waited, if nothing stands in its way."""
        if self.behind or self._ending or (self.session is not None and self.session.crowded):
            return
        backlog, self._backlog = self._backlog, None
        if backlog is not None:
            self._take(backlog)
        if self._backlog is None:
            self.transport.resume_reading()
            self.server.reading_again(self)

    # Frames out.

    def say(self, message: Message) -> None:
        """Send a message, in as many frames as it takes."""
        for each in frames(message):
            self.send(each)

    def send(self, data: bytes) -> None:
        """Send a frame. It leaves with all others of this round."""
        out = self._out
        if not out and not self._corked:
            self.server.flush_soon(self)
        out.append(data)
        self._size += len(data)
        if self._size >= _WRITE:
            self.flush()

    def flush(self) -> None:
        """Hand over to the transport what is there."""
        out = self._out
        if out:
            data = out[0] if len(out) == 1 else b"".join(out)
            out.clear()
            self._size = 0
            # A transport whose connection is lost tells us in the next round, and complains of each write in this one.
            if not self._closed and not self.transport.is_closing():
                self._write(data)

    def _write(self, data: bytes) -> None:
        """Write some frames."""
        if self.behind:
            self._owed += len(data)
        self.transport.write(data)

    def waiter(self) -> asyncio.Future[None]:
        """Is done when the client has caught up, or is gone."""
        if self._waiters is None:
            self._waiters = deque()
        made: asyncio.Future[None] = self.server.loop.create_future()
        self._waiters.append(made)
        return made

    def _wake(self) -> None:
        """Let those go on who wait, a few in each round, as long as there is room."""
        waiters, woken = self._waiters, 0
        while waiters and not self.behind:
            if woken == _WAKES:
                self.server.loop.call_soon(self._wake)
                return
            each = waiters.popleft()
            if not each.done():
                each.set_result(None)
                woken += 1

    # The end.

    def refuse(self, code: int, message: str, request_id: int = 0) -> None:
        """Say what is wrong, and end."""
        if self._ending:
            return
        self.say(ErrorResponse(request_id, code, message))
        self.end()

    def stop(self) -> None:
        """The server stops: what runs may come to its end, and then we end."""
        if not self._ending and (self.session is None or self.session.idle):
            self.refuse(2001, "The server is stopping.")

    def end(self) -> None:
        """End the session: its turns are cancelled and say so, then the connection is closed. Idempotent."""
        if self._ending:
            return
        self._ending = True
        self._backlog = None
        self.configured()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._later(END_SECONDS, self.cut)
        if self.session is None:
            self.finish()
        else:
            self.session.end()

    def finish(self) -> None:
        """Everything has been said. Close when it is sent."""
        self.session = None
        if self._closed:
            return
        self.flush()
        self._closed = True
        transport = self.transport
        if self._eof or not transport.can_write_eof():
            self._close()
            return
        # Closed with bytes unread, the connection would be reset, and our last words lost.
        try:
            transport.write_eof()
        except OSError:
            # It is gone, which we would have heard next.
            transport.abort()
            return
        transport.resume_reading()
        self._later(LINGER_SECONDS, transport.close)

    def _close(self) -> None:
        # Closed twice, a transport with TLS forgets what it belongs to, and fails at its next call.
        if not self.transport.is_closing():
            self.transport.close()

    def cut(self) -> None:
        """Close at once. A frame that is half sent ends in a reset, and never looks like the end of the stream."""
        transport = self.transport
        if transport.get_write_buffer_size() and (ours := socket_of(transport)) is not None:
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        transport.abort()

    def _later(self, seconds: float, what: object) -> asyncio.TimerHandle:
        return self.server.loop.call_later(seconds, what)  # type: ignore[arg-type]  # a bound method without arguments


def socket_of(transport: asyncio.Transport) -> TransportSocket | None:
    """What the transport sends through. With TLS there is none any more shortly before its protocol hears of that."""
    found: TransportSocket | None = transport.get_extra_info("socket")
    return found


def _untaken(transport: asyncio.Transport) -> int:
    """Bytes that a client has not taken: ours, and those that the system still has, where it tells.

    A system may have megabytes, and does not ask for more before a third of them is gone.
    """
    queued, ours = bytearray(4), socket_of(transport)
    if ours is None:
        return transport.get_write_buffer_size()
    try:
        fcntl.ioctl(ours.fileno(), termios.TIOCOUTQ, queued)
    except (OSError, ValueError):
        return transport.get_write_buffer_size()
    return transport.get_write_buffer_size() + int.from_bytes(queued, sys.byteorder)
