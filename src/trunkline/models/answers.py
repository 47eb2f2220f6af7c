"""Reads a provider's answer, in whichever of the forms that providers use: a stream of events, or one JSON text.

Some answer with one JSON text although a stream was asked for: an error with status 200, or the whole completion.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from trunkline.base import jsontext
from trunkline.core.faults import ProviderError
from trunkline.core.usage import Usage
from trunkline.models.http_errors import broken_off
from trunkline.models.model import Answer, Chunk, ReplyState
from trunkline.models.sse import MAX_EVENT, SseDecoder

#: What ends some providers' streams, in place of an event.
_DONE = b"[DONE]"


class Decoder(ReplyState, Protocol):
    """Makes chunks out of one format's events."""

    def feed(self, event: Mapping[str, Any]) -> list[Chunk]:
        """Take an event, or a whole message, and give what can be shown. Raises `ProviderError` if it is an error."""

    def end(self) -> None:
        """The stream's own mark of its end has come."""

    def finish(self) -> Answer:
        """There is no more. Raises `ProviderError` if that is too early."""


class ResponseBody(Chunk):
    """All bytes of an answer that is no conversation."""

    data: bytes


class BodyReader:
    """A `Reader` (see `models.http`) of answers that are one text, such as vectors: one `ResponseBody`.

    `limit`: the most bytes.
    """

    done = False
    complete = False
    spent: Usage | None = None

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._data = bytearray()

    def feed(self, data: bytes) -> Sequence[Chunk]:
        self._data += data
        if len(self._data) > self._limit:
            raise too_large(self._limit)
        return ()

    def finish(self) -> Sequence[Chunk]:
        return [ResponseBody(bytes(self._data))]


class AnswerReader:
    """A `Reader` (see `models.http`) for answers in one format. `limit`: bytes of an event, or of a whole answer."""

    def __init__(self, decoder: Decoder, limit: int = MAX_EVENT) -> None:
        self._decoder = decoder
        self._limit = limit
        self._stream: SseDecoder | None = None
        self._text: bytearray | None = None

    @property
    def done(self) -> bool:
        return self._decoder.done

    @property
    def complete(self) -> bool:
        return self._decoder.complete

    @property
    def spent(self) -> Usage | None:
        return self._decoder.spent

    def feed(self, data: bytes) -> Sequence[Chunk]:
        if self._stream is not None:
            return self._events(self._stream, data)
        if self._text is None:
            return self._first(data)
        self._text += data
        if len(self._text) > self._limit:
            raise too_large(self._limit)
        return ()

    def finish(self) -> Sequence[Chunk]:
        if self._text is not None:
            return [*self._whole(bytes(self._text)), self._decoder.finish()]
        left: Sequence[Chunk] = ()
        if self._stream is not None and not self._decoder.done:
            try:
                left = self._decoded(self._stream.finish())
            except _NotJson:
                if not self._decoder.complete:
                    raise broken_off("the answer broke off in the middle") from None
        return [*left, self._decoder.finish()]

    def _first(self, data: bytes) -> Sequence[Chunk]:
        """What it is shows in the first character: events begin with a name or a colon."""
        beginning = data.lstrip()
        if not beginning:
            return ()
        if beginning[:1] == b"{" or beginning[:1] == b"[":
            self._text = bytearray(beginning)
            return ()
        if beginning[:1] == b"<":
            raise ProviderError(
                "The provider answered with a web page.", retryable=False, hint="Check the base URL: is it the API's?"
            )
        self._stream = SseDecoder(self._limit)
        return self._events(self._stream, data)

    def _events(self, stream: SseDecoder, data: bytes) -> Sequence[Chunk]:
        try:
            return self._decoded(stream.feed(data))
        except ValueError as error:
            raise ProviderError(f"The provider's answer cannot be read: {error}", retryable=False) from None

    def _decoded(self, events: list[tuple[str, bytes]]) -> Sequence[Chunk]:
        chunks: list[Chunk] = []
        for _, data in events:
            if data == _DONE:
                self._decoder.end()
                break
            chunks += self._decoder.feed(_object(data))
            if self._decoder.done:
                break
        return chunks

    def _whole(self, text: bytes) -> Sequence[Chunk]:
        try:
            return self._decoder.feed(_object(text))
        except _NotJson:
            raise broken_off("the answer broke off in the middle") from None


def joined(parts: Iterable[str]) -> str:
    """A text from its pieces. A character that was cut in two, half in each of two events, is whole again."""
    text = "".join(parts)
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def tool_input(text: str) -> tuple[Mapping[str, Any] | None, str | None]:
    """What a model wrote as a tool's input: the object and None, or None and the text that is none."""
    if not text.strip():
        return {}, None
    try:
        value = jsontext.loads(text.encode("utf-8", "replace"))
    except ValueError:
        return None, text
    # Models that want to give nothing write `null`, too.
    if value is None:
        return {}, None
    return (value, None) if isinstance(value, dict) else (None, text)


def new_call_id() -> str:
    """An id for a call that came without one."""
    return f"call_{os.urandom(12).hex()}"


def too_large(limit: int) -> ProviderError:
    """The fault of an answer that nobody reads to its end."""
    return ProviderError(f"The provider's answer is larger than {limit} bytes.", retryable=False)


def no_end() -> ProviderError:
    """The fault of a stream that has neither a reason for its end nor a mark of it."""
    return broken_off("the stream ended without a terminal event")


class _NotJson(ValueError):
    """What should be JSON is not."""


def _object(data: bytes) -> Mapping[str, Any]:
    """The event in some data; an empty one if it is JSON, but no object."""
    try:
        value = jsontext.loads(data)
    except ValueError:
        try:
            # Small servers cut characters in half.
            value = jsontext.loads(data.decode("utf-8", "replace").encode("utf-8"))
        except ValueError as error:
            raise _NotJson(f"no JSON: {error}") from None
    if isinstance(value, list) and value:
        value = value[0]
    return value if isinstance(value, dict) else {}
