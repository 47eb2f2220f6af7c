"""What does not fit into a frame is sent in several, or cut. A server never sends one that is too large.

A long answer becomes several deltas, a long list several responses (all but the last with `more`). Conversations come
here in parts already (see `serve.history`). Of other messages the longest texts are cut, and end with an ellipsis.
Diagnostics that do not fit are left out: half of a JSON object is no use to anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from operator import attrgetter
from typing import Any

from trunkline.base.values import Value
from trunkline.wires.tryll.codec import encode, frame
from trunkline.wires.tryll.codec.errors import Oversize
from trunkline.wires.tryll.messages import (
    AnswerText,
    HistoryEntry,
    ListModelsResponse,
    Message,
    TurnComplete,
)

#: The characters of a text that fit into a frame however wide they are, with room for the rest of the message.
MOST_CHARACTERS = (1 << 18) - 1024

#: What takes the place of diagnostics that do not fit.
NO_DIAGNOSTICS = '{"truncated":true}'


def frames(message: Message) -> list[bytes]:
    """The frames of a message: one, unless it is too large.

    Raises:
        Unsendable: no frame can carry it: a number is out of its range, or it has more items than fit.
    """
    return [frame(payload) for payload in payloads(message)]


def payloads(message: Message, write: Callable[[Message], bytes] = encode) -> list[bytes]:
    """What is in the frames of a message: one payload, unless it is too large. `write` makes it, in another form, too.

    Raises:
        Unsendable: as `frames`.
    """
    try:
        return [write(message)]
    except Oversize:
        return [each for part in _parts(message) for each in payloads(part, write)]


def joined(entries: Iterable[HistoryEntry]) -> tuple[HistoryEntry, ...]:
    """A conversation in which nobody speaks twice in a row, of one whose long texts came in several entries."""
    return tuple(
        HistoryEntry(role, "".join(entry.text for entry in pieces))
        for role, pieces in groupby(entries, attrgetter("role"))
    )


def _parts(message: Message) -> list[Message]:
    """What is sent in place of a message that is too large. Each is smaller, if perhaps not small enough."""
    if isinstance(message, AnswerText):
        return _answers(message)
    if isinstance(message, ListModelsResponse) and len(message.models) > 1:
        half = len(message.models) // 2
        return [message.replace(models=message.models[:half], more=True), message.replace(models=message.models[half:])]
    if isinstance(message, TurnComplete):
        return [message.replace(debug_info=NO_DIAGNOSTICS)]
    return [_cut(message)]


def _answers(message: AnswerText) -> list[Message]:
    text = message.text
    # What fits into a frame may be longer in another form.
    most = MOST_CHARACTERS if len(text) > MOST_CHARACTERS else (len(text) + 1) // 2
    pieces = [text[at : at + most] for at in range(0, len(text), most)]
    return [
        message.replace(
            text=piece,
            is_delta=message.is_delta or number > 0,
            is_final=message.is_final and number == len(pieces) - 1,
        )
        for number, piece in enumerate(pieces)
    ]


def _cut(message: Message) -> Message:
    """The message with its longest texts cut, to half of the longest one's length."""
    limit = _longest(message) // 2
    if limit < len("..."):
        raise Oversize(f"a `{type(message).__name__}` has too many items for a frame")
    cut: Message = _shortened(message, limit)
    return cut


def _longest(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, tuple):
        return max(map(_longest, value), default=0)
    if isinstance(value, Value):
        return max((_longest(getattr(value, field)) for field in value.__fields__), default=0)
    return 0


def _shortened(value: Any, limit: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= limit else value[: limit - 1] + "\N{HORIZONTAL ELLIPSIS}"
    if isinstance(value, tuple):
        return tuple(_shortened(item, limit) for item in value)
    if isinstance(value, Value):
        return type(value)(*(_shortened(getattr(value, field), limit) for field in value.__fields__))
    return value
