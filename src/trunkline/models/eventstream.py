"""Amazon's binary event stream: bytes in, events out. Sans-IO.

    decoder = EventStreamDecoder()
    for event in decoder.feed(data): ...
    decoder.finish()

A frame is its length, the length of its headers, a checksum of both, the headers, the payload and a checksum of all.
It may be split anywhere. What the service reports in the stream instead of an event is raised as `ProviderError`, and
so is what is not such a stream.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

from trunkline.base import jsontext
from trunkline.base.extras import adding
from trunkline.base.values import Value
from trunkline.core.faults import ConfigError, ProviderError
from trunkline.models.http_errors import shown
from trunkline.models.overflow import is_too_long, too_long

#: What the service says of itself, of its load, or of its model. The same request may succeed later. All others are
#: about the request or the account.
PASSING_EXCEPTIONS = frozenset(
    {
        "internalserverexception",
        "internalfailure",
        "internalerror",
        "modelnotreadyexception",
        "modelstreamerrorexception",
        "modeltimeoutexception",
        "serviceunavailableexception",
        "throttlingexception",
    }
)


class StreamEvent(Value):
    """One event: its type, such as `chunk`, and its bytes."""

    type: str
    payload: bytes


class EventStreamDecoder:
    """Cuts a stream of bytes into events.

    Frames are bounded: one of more than 24 MiB is refused as soon as its length is read.

    Raises:
        ConfigError: `botocore`, which knows the format, is not installed.
    """

    def __init__(self) -> None:
        try:
            from botocore.eventstream import (  # type: ignore[import-untyped]  # it has no types
                EventStreamBuffer,
                ParserError,
            )
        except ImportError:
            raise ConfigError("Bedrock needs the package `botocore`.", hint=adding("bedrock")) from None
        self._buffer = EventStreamBuffer()
        # The last three are what its parser lets out when checksums are right and the content is not.
        self._malformed: tuple[type[Exception], ...] = (ParserError, struct.error, KeyError, ValueError)
        self._fed = 0
        self._taken = 0

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        """Take some bytes, and give the events that they complete.

        Raises (while the events are taken):
            ProviderError: the service reports a failure, or the bytes are damaged. Events before it were given.
        """
        self._fed += len(data)
        self._buffer.add_data(data)
        return self._events()

    def finish(self) -> None:
        """The stream has ended.

        Raises:
            ProviderError: in the middle of a frame.
        """
        if self._fed != self._taken:
            raise ProviderError("Bedrock's answer ended in the middle of a message.", retryable=True)

    def _events(self) -> Iterator[StreamEvent]:
        while True:
            try:
                message = next(self._buffer, None)
            except self._malformed as error:
                reason = str(error) or type(error).__name__
                raise ProviderError(f"Bedrock's answer is damaged: {reason}.", retryable=True) from None
            if message is None:
                return
            self._taken += message.prelude.total_length
            yield _event(message.headers, message.payload)


def _event(headers: Mapping[str, Any], payload: bytes) -> StreamEvent:
    kind = headers.get(":message-type")
    if kind == "event":
        return StreamEvent(str(headers.get(":event-type", "")), payload)
    if kind == "exception":
        raise failure(str(headers.get(":exception-type", "exception")), _reason(payload))
    if kind == "error":
        raise failure(str(headers.get(":error-code", "error")), str(headers.get(":error-message", "")))
    raise ProviderError("Bedrock's answer holds a message of no known kind.", retryable=True)


def failure(name: str, reason: str) -> ProviderError:
    """What the service calls `name`, as an error with a true `retryable`."""
    message = f"Bedrock reports `{name}`" + (f": {shown(reason)}" if reason else "")
    if is_too_long(reason, {name}):
        return too_long(message)
    return ProviderError(message, retryable=name.lower() in PASSING_EXCEPTIONS)


def _reason(payload: bytes) -> str:
    try:
        value = jsontext.loads(payload)
    except ValueError:
        return payload.decode("utf-8", "replace")
    if not isinstance(value, dict):
        return ""
    # `modelStreamErrorException` wraps what the model's own server said.
    words = value.get("originalMessage") or value.get("message") or value.get("Message") or ""
    return str(words)
