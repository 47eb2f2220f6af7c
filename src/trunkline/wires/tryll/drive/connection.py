"""One connection to a Tryll server: frames out, answers back to whoever asked.

Answers find their request by its id, the frames of a turn their reply by the agent. Frames that nobody waits for are
normal: of kinds that a newer server knows, late, or about a turn that the server began by itself.

What ends a connection, and what everyone who waits then hears: its loss (1002), a frame that is no message (5001), one
announced larger than any may be (5003), another version of the protocol (5004), whatever the server says that about.
If the server gave a reason before it closed, that is what they hear.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from itertools import count
from ssl import SSLContext
from typing import Any, TypeVar, cast

from trunkline.base.refusal import refusal
from trunkline.wires.tryll.codec import (
    FrameError,
    Framer,
    FrameTooLarge,
    Oversize,
    UnknownKind,
    Unsendable,
    decode,
    encode,
    frame,
)
from trunkline.wires.tryll.drive.address import ServerAddress
from trunkline.wires.tryll.drive.events import VoiceListener, call
from trunkline.wires.tryll.drive.pending import PendingReplies
from trunkline.wires.tryll.drive.turn import Reply, TurnFrame
from trunkline.wires.tryll.errors import TryllError
from trunkline.wires.tryll.messages import (
    PROTOCOL_VERSION,
    CreateAgentResponse,
    CreateVoiceInputResponse,
    DestroyAgentRequest,
    DestroyVoiceInputRequest,
    DownloadProgress,
    ErrorResponse,
    FromClient,
    FromServer,
    Message,
    NodeEvent,
    SendMessageRequest,
    SessionReady,
    WireTranscriptUpdate,
)

logger = logging.getLogger(__name__)

#: Frames that one answer may be split into. A catalog or a conversation of so many MiB is none.
MAX_PARTS = 64
#: How long the end of a connection is waited for before it is cut.
CLOSE_SECONDS = 1.0
#: The most that is read at once: a long answer, and little to keep for each connection.
READ_BYTES = 64 * 1024

_OTHER_VERSION = 5004

Progress = Callable[[DownloadProgress], object]
R = TypeVar("R", bound=FromServer)


class _Pending:
    """A request that waits for its answer."""

    def __init__(self, expected: type[FromServer], progress: Progress | None, then: Callable[[], None] | None) -> None:
        self.expected = expected
        self.progress = progress
        self.then = then
        self.parts: list[FromServer] = []
        self.answered: asyncio.Future[list[FromServer]] = asyncio.get_running_loop().create_future()
        self.limit: asyncio.Timeout | None = None
        self.seconds = 0.0

    def fail(self, error: TryllError) -> None:
        if not self.answered.done():
            self.answered.set_exception(error)

    def heard(self, message: DownloadProgress) -> None:
        """It takes longer, and the server says so: the time begins anew."""
        if self.limit is not None and not self.answered.done():
            self.limit.reschedule(asyncio.get_running_loop().time() + self.seconds)
        if self.progress is not None:
            call(self.progress, message, "progress")


class ClientConnection(asyncio.BufferedProtocol):
    """A connection whose `SessionReady` has come. Made by `open`."""

    def __init__(self, numbers: count[int]) -> None:
        self.ready: SessionReady | None = None
        self.lost: TryllError | None = None
        """Why it is no more; None while it lives."""
        self.listeners: dict[int, Callable[[NodeEvent], None]] = {}
        """Who hears what the nodes of an agent tell, in a turn or not. They raise nothing."""
        self.voices: dict[int, VoiceListener] = {}
        """Voice inputs, by their ids."""
        self.replies = PendingReplies()
        self._numbers = numbers
        self._framer = Framer()
        self._transport: asyncio.Transport | None = None
        self._begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._writable = asyncio.Event()
        self._writable.set()
        self._pending: dict[int, _Pending] = {}
        self._buffer = memoryview(bytearray(READ_BYTES))
        self._reason: TryllError | None = None
        """What the server complained of, naming no request, in its last frame."""

    @classmethod
    async def open(
        cls,
        address: ServerAddress,
        *,
        numbers: count[int],
        timeout: float,
        ssl: SSLContext | None = None,
    ) -> ClientConnection:
        """Connect, and wait for the server's first frame.

        Args:
            numbers: where request ids come from: from 1, ever increasing, and never again the same.

        Raises:
            TryllError: 1001, there is no server; 1003, it says nothing; 5004, it speaks another version; or its reason.
        """
        loop = asyncio.get_running_loop()
        made: list[ClientConnection] = []

        def make() -> ClientConnection:
            made.append(cls(numbers))
            return made[-1]

        try:
            async with asyncio.timeout(timeout):
                if address.is_websocket:
                    # Imported when it is used: over TCP nothing of it is needed.
                    from trunkline.wires.tryll.drive.websocket import WebSocketStream

                    await WebSocketStream.open(address, make, ssl)
                else:
                    await loop.create_connection(make, address.host, address.port, ssl=ssl)
                await asyncio.shield(made[-1]._begun)
        except TimeoutError:
            _abort(made)
            raise TryllError(1003, f"The server at {address} did not begin a session in {timeout:g} s.") from None
        except OSError as error:
            raise TryllError(1001, f"The server at {address} cannot be reached: {refusal(error)}.") from None
        except BaseException:
            _abort(made)
            raise
        return made[-1]

    @property
    def extensions(self) -> tuple[str, ...]:
        """What the server can do beyond the documented protocol."""
        return self.ready.extensions if self.ready is not None else ()

    async def request(
        self,
        message: FromClient,
        expected: type[R],
        timeout: float,
        progress: Progress | None = None,
        *,
        then: Callable[[], None] | None = None,
    ) -> list[R]:
        """Ask, and wait for the answer, which may come in several parts. `message` gets its id here.

        Args:
            timeout: the longest silence: progress begins it anew.
            then: what is to be done when the answer has come, before any frame behind it is read.

        Raises:
            TryllError: the server said no; 1002, the connection is lost; 1003, there was no answer in time; 5003 or
                3007, no frame can carry the message, and none was sent.
        """
        number = next(self._numbers)
        data = _framed(message.replace(request_id=number))
        pending = self._pending[number] = _Pending(expected, progress, then)
        pending.seconds = timeout
        try:
            async with asyncio.timeout(timeout) as pending.limit:
                await self._send(data)
                # It was checked against `expected` when it came.
                return cast("list[R]", await pending.answered)
        except TimeoutError:
            text = f"The server did not answer a `{type(message).__name__}` within {timeout:g} s."
            raise TryllError(1003, text) from None
        finally:
            del self._pending[number]
            if not pending.answered.cancel() and not pending.answered.cancelled():
                # Marks it as seen: it may have failed while the request was still being sent.
                pending.answered.exception()

    async def begin_turn(self, agent_id: int, reply: Reply, text: str) -> None:
        """Send a message; the frames of its turn go to the reply, which hears of the connection's loss, too.

        Raises:
            TryllError: 1002, the connection is lost; 5003, no frame can carry the message.
        """
        number = next(self._numbers)
        data = _framed(SendMessageRequest(number, agent_id, text))
        reply.sent(number)
        self.replies.begin(agent_id, reply)
        try:
            await self._send(data)
        except BaseException:
            self.replies.forget(agent_id, reply)
            raise

    def write(self, message: FromClient) -> None:
        """Send something whose answer nobody waits for."""
        if self._transport is not None and self.lost is None:
            self._transport.write(_framed(message.replace(request_id=next(self._numbers))))

    async def tell(self, message: FromClient) -> None:
        """Send something that is never answered, when there is room for it.

        Raises:
            TryllError: 1002, the connection is lost.
        """
        await self._send(_framed(message))

    async def close(self) -> None:
        """End it. All who wait hear 1002."""
        self._end(TryllError(1002, "The connection was closed."))
        await asyncio.wait({self._ended}, timeout=CLOSE_SECONDS)
        if self._transport is not None:
            self._transport.abort()

    async def _send(self, data: bytes) -> None:
        await self._writable.wait()
        if self.lost is not None or self._transport is None:
            raise self.lost or TryllError(1002)
        self._transport.write(data)

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        # Always the same: asyncio would make one for each read, which takes longer than the reading.
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        try:
            frames = self._framer.feed(bytes(self._buffer[:nbytes]))
        except FrameTooLarge as error:
            for payload in error.frames:
                self._take(payload)
            self._end(TryllError(5003, f"The server broke the protocol: {error.message}."))
            return
        for payload in frames:
            self._take(payload)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(self._reason or TryllError(1002, f"The connection was lost: {exc}." if exc else ""))
        if not self._ended.done():
            self._ended.set_result(None)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    # Frames.

    def _take(self, payload: bytes) -> None:
        if self.lost is not None:
            return
        try:
            message = decode(payload)
        except UnknownKind as error:
            logger.info("a frame of an unknown kind was ignored: %s", error)
            return
        except FrameError as error:
            self._end(TryllError(error.code, f"The server broke the protocol: {error.message}."))
            return
        self._reason = None
        if self.ready is None:
            self._first(message)
        elif isinstance(message, TurnFrame):
            self._of_turn(message)
        elif isinstance(message, WireTranscriptUpdate):
            if message.voice_input_id in self.voices:
                self.voices[message.voice_input_id].feed(message)
        else:
            self._answer(message)

    def _of_turn(self, message: TurnFrame) -> None:
        if isinstance(message, NodeEvent) and message.agent_id in self.listeners:
            self.listeners[message.agent_id](message)
        reply = self.replies.of(message)
        if reply is not None:
            reply.feed(message)

    def _first(self, message: Message) -> None:
        if isinstance(message, ErrorResponse):
            self._end(TryllError(message.code, message.message))
        elif not isinstance(message, SessionReady):
            self._end(TryllError(5001, f"The server began with a `{type(message).__name__}`."))
        elif message.protocol_version != PROTOCOL_VERSION:
            theirs, ours = message.protocol_version, PROTOCOL_VERSION
            self._end(
                TryllError(
                    _OTHER_VERSION, f"The server speaks version {theirs} of the protocol, and this client {ours}."
                )
            )
        else:
            self.ready = message
            self._begun.set_result(None)

    def _answer(self, message: Message) -> None:
        number: int = getattr(message, "request_id", 0)
        pending = self._pending.get(number)
        if isinstance(message, ErrorResponse):
            self._refused(message, pending)
        elif pending is None or pending.answered.done():
            self._unexpected(message)
        elif isinstance(message, DownloadProgress):
            pending.heard(message)
        elif not isinstance(message, pending.expected):
            pending.fail(TryllError(5001, f"The server answered with a `{type(message).__name__}`, not an answer."))
        else:
            pending.parts.append(message)
            if not getattr(message, "more", False):
                pending.answered.set_result(pending.parts)
                if pending.then is not None:
                    pending.then()
            elif len(pending.parts) >= MAX_PARTS:
                pending.fail(TryllError(5001, f"The answer has more than {MAX_PARTS} parts."))

    def _refused(self, message: ErrorResponse, pending: _Pending | None) -> None:
        error = TryllError(message.code, message.message)
        if message.code == _OTHER_VERSION:
            # Whatever it was about, nothing that is said from now on is understood.
            self._end(error)
        elif pending is not None:
            pending.fail(error)
        elif (reply := self.replies.asked(message.request_id)) is not None:
            reply.lose(error)
        elif not message.request_id and message.voice_input_id in self.voices:
            self.voices[message.voice_input_id].complain(error)
        elif not message.request_id and (reply := self.replies.expected(message.agent_id)) is not None:
            # What was said to the agent, it was not told.
            reply.lose(error)
        elif not message.request_id:
            self._reason = error
            logger.warning("the server complains: %s", error)

    def _unexpected(self, message: Message) -> None:
        if isinstance(message, CreateAgentResponse) and message.request_id:
            # Whoever asked for it has given up.
            self.write(DestroyAgentRequest(agent_id=message.agent_id))
        elif isinstance(message, CreateVoiceInputResponse) and message.request_id:
            self.write(DestroyVoiceInputRequest(voice_input_id=message.voice_input_id))

    def _end(self, error: TryllError) -> None:
        if self.lost is not None:
            return
        self.lost = error
        self._writable.set()
        if not self._begun.done():
            self._begun.set_exception(error)
            # Nobody may be waiting any more.
            self._begun.exception()
        for pending in list(self._pending.values()):
            pending.fail(error)
        self.replies.lose(error)
        for voice in list(self.voices.values()):
            voice.lose(error)
        if self._transport is not None:
            self._transport.close()


def _framed(message: FromClient) -> bytes:
    try:
        return frame(encode(message))
    except Unsendable as error:
        raise TryllError(5003 if isinstance(error, Oversize) else 3007, f"{error.message}.") from None


def _abort(made: list[Any]) -> None:
    for connection in made:
        if connection._transport is not None:
            connection._transport.abort()
