"""An envelope as one JSON line, for logs, exports and recordings.

    {"seq":7,"turn":2,"at":1763179200.125,"event":"TextDelta","data":{"text":"Hello"}}

The session is not repeated on every line; whoever keeps the lines knows it. `VERSION` counts incompatible changes of
this form; unknown members are ignored and unknown event names are read as `Extension`, so that newer logs stay
readable.
"""

from __future__ import annotations

from typing import Any

from trunkline.base import jsontext, shapes
from trunkline.core import events
from trunkline.core.events import Envelope, Event, Extension, TextDelta, ThinkingDelta

VERSION = 1

#: What a peer may send, and the levels that a record and a checkpoint put around it.
MAX_DEPTH = jsontext.MAX_DEPTH + 10

_BY_NAME: dict[str, type[Event]] = {kind.__name__: kind for kind in events.EVENTS}


def encode(envelope: Envelope) -> bytes:
    """The line of an envelope, without the line feed."""
    event = envelope.event
    kind = type(event)
    # The two events that come by the thousand are written without a detour through dictionaries.
    if kind is TextDelta or kind is ThinkingDelta:
        text: str = event.text  # type: ignore[attr-defined]
        head = (
            f'{{"seq":{envelope.seq},"turn":{envelope.turn},"at":{envelope.at:.3f},'
            f'"event":"{kind.__name__}","data":{{"text":'
        )
        try:
            return f"{head}{jsontext.quote(text)}}}}}".encode()
        except UnicodeEncodeError:
            return f"{head}{jsontext.quote_ascii(text)}}}}}".encode()
    return jsontext.dumps(
        {
            "seq": envelope.seq,
            "turn": envelope.turn,
            "at": round(envelope.at, 3),
            "event": kind.__name__,
            "data": shapes.encode(event),
        }
    )


def decode(session: str, line: bytes) -> Envelope:
    """The envelope of a line.

    Raises:
        ValueError: it is not such a line.
    """
    data = jsontext.loads(line, MAX_DEPTH)
    try:
        return Envelope(session, int(data["seq"]), int(data["turn"]), float(data["at"]), event_of(data))
    except (KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"not a record: {error}") from None


def event_of(data: dict[str, Any]) -> Event:
    """The event of a parsed record."""
    kind = _BY_NAME.get(data["event"])
    if kind is None:
        return Extension(f"unknown.{data['event']}", dict(data["data"]))
    return shapes.decode(kind, data["data"])
