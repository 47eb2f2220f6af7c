"""One connection to the server under test: what is sent, what comes back, and a line for each in the record.

Frames are cut here, and read with trunkline's verifying decoder: one that it refuses is a fault of the server.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from typing import Any, TypeVar

from trunkline.base.values import Value
from trunkline.conform.kit import Broken, NotApplicable
from trunkline.conform.record import Record
from trunkline.conform.tryll import raw
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.codec import FrameError, decode, encode

T = TypeVar("T", bound=m.Message)

#: Within this time of the client's end a server has closed, too.
END_SECONDS = 5.0
#: How much of a message is told in a record, and in a reason.
NOTED_CHARS = 2400
SHOWN_CHARS = 160

_CHUNK = 1 << 16
_RESET = struct.pack("ii", 1, 0)
#: Frames of a turn, and others that answer nothing.
_BESIDE = (m.AnswerText, m.TurnComplete, m.NodeEvent, m.DownloadProgress)


class ReceivedFrame(Value):
    """A frame of the server's. `problem`: what is wrong with it."""

    message: m.Message | None
    size: int
    problem: str = ""


class ObservedTurn(Value):
    """All frames of a turn, in order."""

    answers: tuple[m.AnswerText, ...]
    events: tuple[m.NodeEvent, ...]
    complete: m.TurnComplete

    @property
    def text(self) -> str:
        """What was answered: deltas add to it, and others replace it."""
        text = ""
        for answer in self.answers:
            text = text + answer.text if answer.is_delta else answer.text
        return text

    @property
    def request_ids(self) -> set[int]:
        """All that its frames name: one, if all is well."""
        return {answer.request_id for answer in self.answers} | {self.complete.request_id}


class Link:
    """A connection. Only what is waited for is read: who waits for nothing is a client that does not read."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, record: Record, timeout: float
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._record = record
        self.timeout = timeout
        self.ready: m.SessionReady | None = None
        self._bytes = bytearray()
        self._inbox: list[m.Message] = []
        self._ended = False
        self._ids = 1000

    # Out.

    def next_id(self) -> int:
        """A request id that was not used before."""
        self._ids += 1
        return self._ids

    async def send(self, *messages: m.Message) -> None:
        """Send good frames, in one go."""
        for message in messages:
            self._record.add("host", told(message).encode("utf-8", "backslashreplace"))
        await self._write(b"".join(raw.frame(encode(message)) for message in messages))

    async def send_bytes(self, data: bytes, what: str) -> None:
        """Send anything."""
        shown = data[:64].hex(" ", 4) + (" ..." if len(data) > 64 else "")
        self._record.add("host", f"{what}, {len(data)} bytes: {shown}".encode())
        await self._write(data)

    async def _write(self, data: bytes) -> None:
        try:
            self._writer.write(data)
            async with asyncio.timeout(self.timeout):
                await self._writer.drain()
        except TimeoutError:
            raise Broken(f"the server does not read: {len(data)} bytes were not accepted") from None
        except OSError:
            # Its last words may still be there.
            self._record.remark("the connection is closed")

    async def half_close(self) -> None:
        """Say nothing more, and go on listening.

        Raises:
            NotApplicable: the connection has TLS, which ends for both sides at once.
        """
        if not self._writer.can_write_eof():
            raise NotApplicable("with TLS, a connection ends for both sides at once")
        self._record.remark("the client closes its side")
        try:
            self._writer.write_eof()
        except OSError:
            self._record.remark("the connection is closed")

    def reset(self) -> None:
        """Be gone at once."""
        self._record.remark("the client is gone")
        sock = self._writer.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._writer.transport.abort()

    async def close(self) -> None:
        """Let go of it."""
        self._writer.transport.abort()

    # In.

    async def take(self, wanted: Callable[[m.Message], bool], what: str, seconds: float | None = None) -> m.Message:
        """The first message that is wanted, heard already or to come. Others wait for whoever wants them.

        Raises:
            Broken: it does not come in time, or the server ends, or sends what is no frame.
        """
        patience = self.timeout if seconds is None else seconds
        until = asyncio.get_running_loop().time() + patience
        seen = 0
        while True:
            for number in range(seen, len(self._inbox)):
                if wanted(self._inbox[number]):
                    return self._inbox.pop(number)
            seen = len(self._inbox)
            if not await self._read(until, f"no {what} within {patience:g} s"):
                raise Broken(f"the server ended the connection instead of {what}")

    async def first(self, what: str) -> m.Message:
        """The next message, whatever it is."""
        return await self.take(lambda message: True, what)

    async def quiet(self, seconds: float) -> list[m.Message]:
        """What comes within a time, and what nobody wanted before."""
        until = asyncio.get_running_loop().time() + seconds
        try:
            while await self._read(until, ""):
                pass
        except Broken as problem:
            if str(problem):
                raise
        found, self._inbox = self._inbox, []
        return found

    async def waiting(self) -> list[m.Message]:
        """What has come and was not wanted yet. It goes on waiting."""
        self._inbox = await self.quiet(0)
        return list(self._inbox)

    async def ended(self, seconds: float = END_SECONDS) -> list[m.Message]:
        """Wait for the server to close; gives what it still said.

        Raises:
            Broken: it does not close in time, or in the middle of a frame.
        """
        until = asyncio.get_running_loop().time() + seconds
        while await self._read(until, f"the server has not closed the connection within {seconds:g} s"):
            pass
        if self._bytes:
            raise Broken(f"the connection ended within a frame, after {len(self._bytes)} bytes of it")
        found, self._inbox = self._inbox, []
        return found

    async def _read(self, until: float, late: str) -> bool:
        """Read what there is; False at the end."""
        if self._ended:
            return False
        try:
            async with asyncio.timeout_at(until):
                data = await self._reader.read(_CHUNK)
        except TimeoutError:
            raise Broken(late) from None
        except OSError:
            data = b""
        if not data:
            self._ended = True
            self._record.remark("the server has closed the connection")
            return False
        self._bytes += data
        while len(self._bytes) >= 4:
            size = int.from_bytes(self._bytes[:4], "little")
            if size > raw.MAX_FRAME:
                self._note(ReceivedFrame(None, size, f"a frame of {size} bytes was announced"))
            if len(self._bytes) < 4 + size:
                break
            payload = bytes(self._bytes[4 : 4 + size])
            del self._bytes[: 4 + size]
            try:
                message = decode(payload)
            except FrameError as error:
                self._note(ReceivedFrame(None, size, f"a frame cannot be read: {error}"))
            else:
                self._note(ReceivedFrame(message, size))
                self._inbox.append(message)
        return True

    def _note(self, heard: ReceivedFrame) -> None:
        line = told(heard.message) if heard.message is not None else heard.problem
        self._record.add("agent", line.encode("utf-8", "backslashreplace"), heard)
        if heard.message is None:
            self._ended = True
            raise Broken(heard.problem)

    # Questions and answers.

    async def answer(self, request_id: int, what: str) -> m.Message:
        """What answers a request, or refuses it."""
        return await self.take(
            lambda message: getattr(message, "request_id", None) == request_id and not isinstance(message, _BESIDE),
            f"answer to {what} with the request id {request_id}",
        )

    async def ask(self, request: Any, kind: type[T]) -> T:
        """Send a request and get its answer. Without an id of its own it gets one.

        Raises:
            Broken: another one came, or none.
        """
        request = request if request.request_id else request.replace(request_id=self.next_id())
        await self.send(request)
        found = await self.answer(request.request_id, type(request).__name__)
        if not isinstance(found, kind):
            raise Broken(f"`{type(request).__name__}` got {shown(found)}, not `{kind.__name__}`")
        return found

    async def refused(self, request: Any, *codes: int, why: str, named: str = "") -> m.ErrorResponse:
        """Send a request that is to be refused, with one of these numbers. 6000 and the like stand for a range.

        Raises:
            Broken: it was not, or with another; or the message does not say `named`.
        """
        request = request if request.request_id else request.replace(request_id=self.next_id())
        await self.send(request)
        found = await self.answer(request.request_id, type(request).__name__)
        return _refusal(found, codes, f"`{type(request).__name__}` {why}", named)

    async def error(self, *codes: int, why: str) -> m.ErrorResponse:
        """The error that a frame is answered with from which no request id can be read.

        Raises:
            Broken: there is none, or another.
        """
        found = await self.take(lambda message: not isinstance(message, _BESIDE), f"answer to {why}")
        return _refusal(found, codes, why, "")

    async def turn(self, agent_id: int, request_id: int = 0, seconds: float | None = None) -> ObservedTurn:
        """All that an agent says until its turn is complete.

        Raises:
            Broken: it does not come to an end, or the request `request_id` was refused.
        """

        def wanted(message: m.Message) -> bool:
            if isinstance(message, m.ErrorResponse):
                return bool(request_id) and message.request_id == request_id
            is_of_turn = isinstance(message, m.AnswerText | m.TurnComplete | m.NodeEvent)
            return is_of_turn and getattr(message, "agent_id", 0) == agent_id

        answers: list[m.AnswerText] = []
        events: list[m.NodeEvent] = []
        while True:
            found = await self.take(wanted, f"end of a turn of the agent {agent_id}", seconds)
            if isinstance(found, m.AnswerText):
                answers.append(found)
            elif isinstance(found, m.NodeEvent):
                events.append(found)
            elif isinstance(found, m.TurnComplete):
                return ObservedTurn(tuple(answers), tuple(events), found)
            else:
                raise Broken(f"a message to the agent got {shown(found)}")

    async def say(self, agent_id: int, text: str) -> ObservedTurn:
        """One whole turn.

        Raises:
            Broken: it was refused, or does not end.
        """
        request_id = self.next_id()
        await self.send(m.SendMessageRequest(request_id, agent_id, text))
        return await self.turn(agent_id, request_id)

    async def agent(self, *nodes: m.NodeDescription, start: str = "", **options: Any) -> int:
        """The id of a new agent; its turns begin at the first node."""
        graph = m.GraphDescription(tuple(nodes), start or nodes[0].name)
        return (await self.ask(m.CreateAgentRequest(0, graph, **options), m.CreateAgentResponse)).agent_id


def _refusal(found: m.Message, codes: tuple[int, ...], what: str, named: str) -> m.ErrorResponse:
    wanted = " or ".join(f"{code // 1000}xxx" if not code % 1000 else str(code) for code in codes)
    if not isinstance(found, m.ErrorResponse):
        raise Broken(f"{what} got {shown(found)}, not the error {wanted}")
    if not any(found.code == code or (not code % 1000 and found.code // 1000 == code // 1000) for code in codes):
        raise Broken(f"{what} got {shown(found)}, not the error {wanted}")
    if named and named not in found.message:
        raise Broken(f"{what}: the message of the error {found.code}, {found.message!a}, does not name `{named}`")
    return found


def told(message: m.Message) -> str:
    """A message as a record has it. No token stands there."""
    if isinstance(message, m.ConfigureSessionRequest) and message.token:
        message = message.replace(token="***")  # noqa: S106  # what is shown in its place
    text = repr(message)
    return text if len(text) <= NOTED_CHARS else f"{text[:NOTED_CHARS]}... ({len(text)} characters)"


def shown(message: m.Message) -> str:
    """A message as a reason tells it."""
    if isinstance(message, m.ErrorResponse):
        return f"the error {message.code} ({message.message[:SHOWN_CHARS]!a})"
    text = told(message).encode("ascii", "backslashreplace").decode()
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}..."
