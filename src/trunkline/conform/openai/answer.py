"""What came back from a server: a status, a type, and a JSON value or the events of a stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.base import jsontext
from trunkline.base.values import Value
from trunkline.models.sse import SseDecoder

JSON_TYPE, EVENTS_TYPE = "application/json", "text/event-stream"
DONE = "[DONE]"


class SentEvent(Value):
    """One event of a stream."""

    name: str
    """Of its `event` line; empty if it has none."""
    text: str
    """Its `data`."""
    data: Any
    """The JSON value in that; None if it holds none."""


class OpenAIAnswer(Value):
    """What came back."""

    asked: str
    """The request, for a reason."""
    status: int
    type: str
    """The content type, without its parameters."""
    body: bytes
    data: Any
    """The JSON value in it; None if it holds none."""
    shown: str
    """The beginning of it, for a reason."""
    events: tuple[SentEvent, ...] = ()
    """The events of a stream, comments left out."""

    @property
    def is_stream(self) -> bool:
        """Whether events came back."""
        return self.type == EVENTS_TYPE

    def member(self, *path: str | int) -> Any:
        """A member of the value in it, or of one deeper; None if it is not there."""
        return member(self.data, *path)

    @property
    def told(self) -> str:
        """The status and the beginning, for a reason."""
        return f"{self.status} {self.shown}"


def member(value: Any, *path: str | int) -> Any:
    """A member of a value, or of one deeper; None if it is not there."""
    found = value
    for name in path:
        if isinstance(found, Mapping) and isinstance(name, str):
            found = found.get(name)
        elif isinstance(found, list) and isinstance(name, int) and -len(found) <= name < len(found):
            found = found[name]
        else:
            return None
    return found


def events_in(body: bytes) -> tuple[SentEvent, ...]:
    """The events of a stream, as the standard for server-sent events reads them."""
    decoder = SseDecoder(limit=2 * len(body) + 2)
    found = [*decoder.feed(body), *decoder.finish()]
    return tuple(SentEvent(name, data.decode("utf-8", "replace"), parsed(data)) for name, data in found)


def parsed(data: bytes) -> Any:
    """The JSON value in some bytes; None if they hold none."""
    try:
        return jsontext.loads(data)
    except ValueError:
        return None


def is_count(value: Any) -> bool:
    """Whether a value is a number of something."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_text(value: Any) -> bool:
    """Whether a value is a text that says something."""
    return isinstance(value, str) and bool(value)
