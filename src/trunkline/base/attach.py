"""How a program that a host spawned talks to the exchange behind it: `--attach`. Sans-IO.

The client sends one line of JSON, the `AttachHeader`, and gets one `AttachAnswer`. Then it sends what its host sends,
as it is, and gets frames with what the host is to be told: the length in four bytes, and so many bytes. A frame of the
length 0 is the last one, and the rest is an `AttachEnding`. A connection that ends without it was broken.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from trunkline.base import jsontext, shapes
from trunkline.base.values import Value

#: The name of the socket in the exchange's home.
ATTACH_SOCKET = "attach.sock"

#: AgentProc: the line of a program that was told to end, which is all that its bridge can do to stop the turn.
STOP = b'{"type":"stop"}'

#: A message of AgentProc is part of the header: as much as its bridges send, and as JSON may make of it.
MAX_HEADER = 64 * 1024 * 1024
#: What the exchange says of itself: ids and errors.
MAX_ANSWER = 1024 * 1024
#: One frame. What comes at once may be more.
MAX_FRAME = 16 * 1024 * 1024

_LENGTH_BYTES = 4

V = TypeVar("V", bound=Value)
Wire = Literal["jsonstream", "agentproc", "chat", "acp", "mcp"]


class BadAttachment(shapes.ShapeError):
    """What came is not a header, an answer or a frame."""

    def __init__(self, problem: str) -> None:
        super().__init__("", problem)


class AttachHeader(Value):
    """Who comes, and to which session. Without a session a new one begins. On ACP and MCP clients name the sessions."""

    wire: Wire
    agent: str | None = None
    """None: the one that there is, or the session's."""
    session_id: str | None = None
    """It begins unless it is there."""
    resume: str | None = None
    """It must be there. `latest`: the agent's newest."""
    workspace: str | None = None
    max_line: int | None = None
    """JSON stream: the longest command that is accepted."""
    dialect: str | None = None
    """AgentProc: how the bridge talks."""
    turn: Mapping[str, Any] | None = None
    """AgentProc: what it said."""
    fetch: bool = True
    private_urls: bool = False
    agents: tuple[str, ...] = ()
    """MCP: who can be asked; nobody named: all."""


class AttachAnswer(Value):
    """Either the session, or why there is none. On ACP and MCP there is none yet."""

    session: str | None = None
    agent: str | None = None
    error: str | None = None
    retryable: bool = False


class AttachEnding(Value):
    """The exit code, and what went wrong, with the kind of the fault."""

    exit: int
    error: str | None = None
    kind: str = ""


def encode(value: AttachHeader | AttachAnswer) -> bytes:
    """The line of it."""
    return jsontext.dumps(shapes.encode(value)) + b"\n"


def decode_header(line: bytes) -> AttachHeader:
    """The header.

    Raises:
        BadAttachment: it is not one.
    """
    return _decoded(AttachHeader, line, "The first line")


def decode_answer(line: bytes) -> AttachAnswer:
    """The answer.

    Raises:
        BadAttachment: it is not one.
    """
    return _decoded(AttachAnswer, line, "The exchange's answer")


def _decoded(kind: type[V], line: bytes, what: str) -> V:
    try:
        return shapes.decode(kind, jsontext.loads(line))
    except ValueError as error:
        raise BadAttachment(f"{what} cannot be understood: {error}.") from None


def frames(data: bytes) -> bytes:
    """What the host is to be told, in frames."""
    if len(data) <= MAX_FRAME:
        return len(data).to_bytes(_LENGTH_BYTES) + data if data else b""
    return b"".join(frames(data[start : start + MAX_FRAME]) for start in range(0, len(data), MAX_FRAME))


def last_frame(ending: AttachEnding) -> bytes:
    """The end of it."""
    return bytes(_LENGTH_BYTES) + jsontext.dumps(shapes.encode(ending)) + b"\n"


class FrameReader:
    """Takes frames apart."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._ended = False

    def feed(self, data: bytes) -> bytes:
        """Bytes from the exchange; gives those of them that are for the host.

        Raises:
            BadAttachment: that is not a frame.
        """
        self._data += data
        found = []
        while not self._ended and len(self._data) >= _LENGTH_BYTES:
            length = int.from_bytes(self._data[:_LENGTH_BYTES])
            if length > MAX_FRAME:
                raise BadAttachment(f"The exchange announced {length} bytes at once.")
            if len(self._data) < _LENGTH_BYTES + length:
                break
            found.append(bytes(self._data[_LENGTH_BYTES : _LENGTH_BYTES + length]))
            del self._data[: _LENGTH_BYTES + length]
            self._ended = length == 0
        return b"".join(found)

    def finish(self) -> AttachEnding | None:
        """The connection has ended: how; None if it was broken."""
        try:
            return shapes.decode(AttachEnding, jsontext.loads(bytes(self._data))) if self._ended else None
        except ValueError:
            return None
