"""An envelope as one JSON line, for logs, exports and recordings.

    {"seq":7,"turn":2,"at":1763179200.125,"event":"TextDelta","data":{"text":"Hello"}}

Deltas that follow each other may share a line: it has the last one's number, the first one's time, their text joined,
and how many characters each of them had.

    {"seq":9,"turn":2,"at":1763179200.125,"event":"TextDelta","data":{"text":"Hello, you","parts":[5,2,3]}}

The session is not repeated on every line; whoever keeps the lines knows it. `VERSION` counts incompatible changes of
this form; unknown members are ignored and unknown event names are read as `Extension`, so that newer logs stay
readable.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

from trunkline.base import jsontext, shapes
from trunkline.core import events
from trunkline.core.events import Envelope, Event, Extension, TextDelta, ThinkingDelta

VERSION = 2
#: The first in which deltas share lines.
VERSION_WITH_PARTS = 2

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
        head = _delta_head(envelope.seq, envelope)
        try:
            return f"{head}{jsontext.quote(text)}}}}}".encode()
        except UnicodeEncodeError:
            return f"{head}{jsontext.quote_ascii(text)}}}}}".encode()
    return jsontext.dumps(
        {
            "seq": envelope.seq,
            "turn": envelope.turn,
            "at": _moment(envelope.at),
            "event": kind.__name__,
            "data": shapes.encode(event),
        }
    )


def encode_deltas(deltas: Sequence[Envelope]) -> list[bytes]:
    """Deltas of one kind and one turn that follow each other, in one line; in several only where that is not possible.

    Surrogates make a pair if one delta ends and the next begins with half of a character: then there would be one less.
    """
    if len(deltas) == 1:
        return [encode(deltas[0])]
    texts = [delta.event.text for delta in deltas]  # type: ignore[attr-defined]
    text, parts = jsontext.quote("".join(texts)), ",".join([str(len(each)) for each in texts])
    try:
        return [f'{_delta_head(deltas[-1].seq, deltas[0])}{text},"parts":[{parts}]}}}}'.encode()]
    except UnicodeEncodeError:
        return list(map(encode, deltas))


def _delta_head(seq: int, delta: Envelope) -> str:
    at, name = _moment(delta.at), type(delta.event).__name__
    return f'{{"seq":{seq},"turn":{delta.turn},"at":{at:.3f},"event":"{name}","data":{{"text":'


def _moment(at: float) -> float:
    """Whole milliseconds, the same ones that `round(at * 1000)` has before and after: rows and pages are made of both.

    `round(at, 3)` differs from that by one, once in thousands of times.
    """
    return round(at * 1000) / 1000


def decode(session: str, line: bytes) -> Envelope:
    """The envelope of a line; deltas that share it are one.

    Raises:
        ValueError: it is not such a line.
    """
    return _whole(session, jsontext.loads(line, MAX_DEPTH))


def decode_all(session: str, line: bytes) -> Sequence[Envelope]:
    """The envelopes of a line: one, or the deltas that share it.

    Raises:
        ValueError: it is not such a line.
    """
    data = jsontext.loads(line, MAX_DEPTH)
    whole = _whole(session, data)
    if not isinstance(whole.event, (TextDelta, ThinkingDelta)) or "parts" not in data["data"]:
        return (whole,)
    kind, text, parts = type(whole.event), whole.event.text, data["data"]["parts"]
    if not isinstance(parts, list) or not all(type(part) is int and part >= 0 for part in parts):
        raise ValueError("not a record: its parts are not numbers")
    if sum(parts) != len(text) or not 0 < len(parts) <= whole.seq:
        raise ValueError("not a record: its parts are not those of its text")
    first = whole.seq - len(parts) + 1
    return [
        Envelope(session, seq, whole.turn, whole.at, kind(text[start:end]))
        for seq, (start, end) in enumerate(pairwise(accumulate(parts, initial=0)), first)
    ]


def _whole(session: str, data: Any) -> Envelope:
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
