"""How an agent says things in each dialect. Sans-IO: every method gives the bytes to write, which may be none.

begin, session          under which id the conversation is kept, as early as possible: a kill must not lose it
text, thinking          pieces of the answer and of the reasoning
request                 a tool waits for permission
answer, error           the end, one way or the other

No line is longer than bridges read, however much is said: `serve` and `sdk` both speak through this.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

from trunkline.wires.agentproc import codec
from trunkline.wires.agentproc.codec import MAX_LINE, whole
from trunkline.wires.agentproc.messages import Dialect, PermissionRequest

if TYPE_CHECKING:
    from trunkline.core.usage import Usage

#: Characters in one piece. However they are escaped, the line stays below what bridges read.
LONGEST_PIECE = 1024 * 1024
#: What stands behind a text that has to fit into one line, and does not.
CUT = "\n\n…(truncated)"


class DialectWriter(Protocol):
    """A dialect, for one turn."""

    def begin(self) -> bytes:
        """The session is open."""

    def session(self, session_id: str, *, now: bool) -> bytes:
        """The conversation is kept under this id, which is said at once, or at the latest with the end."""

    def text(self, text: str) -> bytes:
        """A piece of the answer."""

    def thinking(self, text: str) -> bytes:
        """A piece of the reasoning."""

    def request(self, request: PermissionRequest) -> bytes:
        """A tool that waits for permission. Nothing: there is nobody to ask."""

    def answer(self, reply: str | None = None, usage: Usage | None = None) -> bytes:
        """The turn has ended well. The `reply` comes behind the pieces; without one they were all of the answer."""

    def error(self, message: str, usage: Usage | None = None) -> bytes:
        """It has not."""


def dialect_writer(dialect: Dialect, session_id: str = "", *, streaming: bool = True) -> DialectWriter:
    """What speaks a dialect. An empty `session_id`: the conversation is not kept."""
    return LineWriter(session_id, streaming=streaming) if dialect == "0.1" else EventWriter(session_id)


class LineWriter:
    """0.1. The text goes out once: as partials where the bridge streams, else as the body at the end."""

    def __init__(self, session_id: str = "", *, streaming: bool = True) -> None:
        self._session_id = session_id
        self._streaming = streaming
        self._body: list[str] = []

    def begin(self) -> bytes:
        return self.session(self._session_id, now=True) if self._session_id else b""

    def session(self, session_id: str, *, now: bool) -> bytes:
        return codec.encode_session(session_id)

    def text(self, text: str) -> bytes:
        if self._streaming:
            return b"".join(map(codec.encode_partial, _pieces(text)))
        self._body.append(text)
        return b""

    def thinking(self, text: str) -> bytes:
        """There is no line for it: a partial would be part of the answer."""
        return b""

    def request(self, request: PermissionRequest) -> bytes:
        return b""

    def answer(self, reply: str | None = None, usage: Usage | None = None) -> bytes:
        body = "".join(self._body) if reply is None else reply
        if len(body) > LONGEST_PIECE:
            # A line of the body can only be cut by the end of a line.
            body = "\n".join(piece for line in body.split("\n") for piece in _pieces(line))
        return codec.encode_body(body) if body else b""

    def error(self, message: str, usage: Usage | None = None) -> bytes:
        return codec.encode_error(_cut(message))


class EventWriter:
    """0.4. The text goes out as partials and once more, whole, in the result: the bridge shows the one or the other."""

    def __init__(self, session_id: str = "") -> None:
        # Most bridges speak 0.1.
        from trunkline.wires.agentproc import codec_ndjson

        self._codec = codec_ndjson
        self._session_id = session_id
        self._said: list[str] = []
        self._streamed = False

    def begin(self) -> bytes:
        return self.session(self._session_id, now=True) if self._session_id else b""

    def session(self, session_id: str, *, now: bool) -> bytes:
        self._session_id = session_id
        if not now:
            return b""
        # No event has only the id; a partial without text shows nothing.
        self._streamed = True
        return self._codec.encode_partial("", session_id=session_id)

    def text(self, text: str) -> bytes:
        self._streamed = True
        self._said.append(text)
        return b"".join(map(self._codec.encode_partial, _pieces(text)))

    def thinking(self, text: str) -> bytes:
        return b"".join(self._codec.encode_partial(piece, "thinking") for piece in _pieces(text))

    def request(self, request: PermissionRequest) -> bytes:
        """Nothing also if it is longer than bridges read: nobody would answer."""
        line = self._codec.encode_request(request, self._session_id)
        return line if len(line) <= MAX_LINE else b""

    def answer(self, reply: str | None = None, usage: Usage | None = None) -> bytes:
        text = "".join(self._said) if reply is None else reply
        shown = b""
        if reply and (self._streamed or len(reply) > LONGEST_PIECE):
            # A bridge that has seen a partial does not show the result, and one result does not hold everything.
            shown = self.text(reply)
        return shown + self._codec.encode_result(_cut(text), self._session_id, _usage(usage))

    def error(self, message: str, usage: Usage | None = None) -> bytes:
        return self._codec.encode_error(_cut(message), self._session_id, _usage(usage))


def _pieces(text: str) -> Iterator[str]:
    """The text, in pieces of a bounded length. Of none there is one, without text."""
    text = whole(text)
    for start in range(0, len(text) or 1, LONGEST_PIECE):
        yield text[start : start + LONGEST_PIECE]


def _cut(text: str) -> str:
    text = whole(text)
    return text if len(text) <= LONGEST_PIECE else text[:LONGEST_PIECE] + CUT


def _usage(usage: Usage | None) -> dict[str, Any] | None:
    """By the names of the protocol; what is not known is left out."""
    if usage is None:
        return None
    named = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
    }
    return {name: tokens for name, tokens in named.items() if tokens is not None}
