"""How an agent says things in each dialect. Sans-IO: every method gives the bytes to write, which may be none.

begin                   under which id the conversation is kept, as early as possible: a kill must not lose it
text, thinking          pieces of the answer and of the reasoning
request                 a tool waits for permission
answer, error           the end, one way or the other
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from trunkline.core.events import ToolRequested
from trunkline.core.usage import Usage
from trunkline.wires.agentproc import codec, codec_ndjson
from trunkline.wires.agentproc.codec import whole
from trunkline.wires.agentproc.messages import Dialect, PermissionRequest

#: Characters in one piece. However they are escaped, the line stays below what bridges read.
LONGEST_PIECE = 1024 * 1024


class Voice(Protocol):
    """A dialect, for one turn."""

    def begin(self) -> bytes:
        """The session is open."""

    def text(self, text: str) -> bytes:
        """A piece of the answer."""

    def thinking(self, text: str) -> bytes:
        """A piece of the reasoning."""

    def request(self, request_id: str, request: ToolRequested) -> bytes:
        """A tool that waits for permission."""

    def answer(self, usage: Usage | None) -> bytes:
        """The turn has ended well."""

    def error(self, message: str, usage: Usage | None) -> bytes:
        """It has not."""


def voice(dialect: Dialect, session_id: str, *, streaming: bool) -> Voice:
    """The voice of a dialect. An empty `session_id`: the conversation is not kept."""
    return LineVoice(session_id, streaming=streaming) if dialect == "0.1" else EventVoice(session_id)


class LineVoice:
    """0.1. The text goes out once: as partials where the bridge streams, else as the body at the end."""

    def __init__(self, session_id: str, *, streaming: bool) -> None:
        self._session_id = session_id
        self._streaming = streaming
        self._body: list[str] = []

    def begin(self) -> bytes:
        return codec.encode_session(self._session_id) if self._session_id else b""

    def text(self, text: str) -> bytes:
        if self._streaming:
            return b"".join(map(codec.encode_partial, _pieces(text)))
        self._body.append(text)
        return b""

    def thinking(self, text: str) -> bytes:
        """There is no line for it: a partial would be part of the answer."""
        return b""

    def request(self, request_id: str, request: ToolRequested) -> bytes:
        """Nobody can be asked: the policy has decided before."""
        return b""

    def answer(self, usage: Usage | None) -> bytes:
        body = "".join(self._body)
        return codec.encode_body(body) if body else b""

    def error(self, message: str, usage: Usage | None) -> bytes:
        return codec.encode_error(message)


class EventVoice:
    """0.4. The text goes out as partials and once more, whole, in the result: the bridge shows the one or the other."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._said: list[str] = []

    def begin(self) -> bytes:
        # No event has only the id; a partial without text shows nothing.
        return codec_ndjson.encode_partial("", session_id=self._session_id) if self._session_id else b""

    def text(self, text: str) -> bytes:
        self._said.append(text)
        return b"".join(map(codec_ndjson.encode_partial, _pieces(whole(text))))

    def thinking(self, text: str) -> bytes:
        return b"".join(codec_ndjson.encode_partial(piece, "thinking") for piece in _pieces(whole(text)))

    def request(self, request_id: str, request: ToolRequested) -> bytes:
        description = request.description
        return codec_ndjson.encode_request(
            PermissionRequest(request_id, request.name, request.args, description, request.call_id), self._session_id
        )

    def answer(self, usage: Usage | None) -> bytes:
        return codec_ndjson.encode_result(whole("".join(self._said)), self._session_id, _usage(usage))

    def error(self, message: str, usage: Usage | None) -> bytes:
        return codec_ndjson.encode_error(message, self._session_id, _usage(usage))


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), LONGEST_PIECE):
        yield text[start : start + LONGEST_PIECE]


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
