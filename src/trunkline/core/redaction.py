"""Events without secrets: what a session does to each one before it is logged or shown.

A secret in streamed text comes in pieces; what could be the beginning of one is held back until the next piece, or the
next event of another kind, shows what it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from trunkline.core.events import Event, TextDelta, ThinkingDelta


class RedactingStream(Protocol):
    """Takes secrets out of a text that comes in pieces."""

    def feed(self, text: str) -> str:
        """The next piece; gives what can be shown."""

    def finish(self) -> str:
        """What was held back."""


class Redacts(Protocol):
    """Takes known secrets out of texts; `base.redact.Redactor` is one."""

    def __bool__(self) -> bool:
        """Whether it knows any."""

    def data(self, data: Any) -> Any:
        """JSON data or a value without them; the same object if there were none."""

    def stream(self) -> RedactingStream:
        """For one text in pieces."""


class Redaction:
    """What a `Session` takes as `redact`: gives the events to record in place of one."""

    def __init__(self, secrets: Redacts) -> None:
        self._secrets = secrets
        self._streams: dict[type[TextDelta | ThinkingDelta], RedactingStream] = {}

    def __call__(self, event: Event) -> Sequence[Event]:
        # Whoever knows no secret yet may learn one; until then, text by the thousand passes untouched.
        if not self._secrets and not self._streams:
            return (event,)
        if isinstance(event, TextDelta | ThinkingDelta):
            stream = self._streams.get(type(event))
            if stream is None:
                stream = self._streams[type(event)] = self._secrets.stream()
            text = stream.feed(event.text)
            return (type(event)(text),) if text else ()
        rest = tuple(kind(text) for kind, stream in self._streams.items() if (text := stream.finish()))
        self._streams.clear()
        return (*rest, self._secrets.data(event))

    def text(self, text: str) -> str:
        """A text that is no event, such as a complaint to the host."""
        clean: str = self._secrets.data(text)
        return clean
