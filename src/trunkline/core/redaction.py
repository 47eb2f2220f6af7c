"""Events without secrets: what a session does to each one before it is logged or shown.

Streamed text is left as it is: a secret in it would come in pieces, and whatever could put one there (a tool's output,
a provider's error) has passed through here or through the agent's own redaction before the model saw it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from trunkline.core.events import (
    Event,
    Failed,
    Notice,
    Progress,
    ToolCancelled,
    ToolFinished,
    ToolJudged,
    ToolRequested,
)


class Redacts(Protocol):
    """Takes known secrets out of texts and of JSON data; `base.redact.Redactor` is one."""

    def text(self, text: str) -> str:
        """The text without them."""

    def data(self, data: Any) -> Any:
        """The data without them."""


def redacting(secrets: Redacts) -> Callable[[Event], Event]:
    """What a `Session` takes as `redact`."""

    def redact(event: Event) -> Event:
        match event:
            case Failed(message=message) | Notice(message=message) | Progress(message=message):
                clean = secrets.text(message)
                return event if clean is message else event.replace(message=clean)
            case ToolCancelled(reason=reason):
                return event.replace(reason=secrets.text(reason))
            case ToolFinished(output=output, metadata=metadata):
                return event.replace(output=secrets.text(output), metadata=secrets.data(metadata))
            case ToolRequested(args=args, description=description) | ToolJudged(args=args, description=description):
                return event.replace(args=secrets.data(args), description=secrets.text(description))
            case _:
                return event

    return redact
