"""Events as Server-Sent Events.

    id: 7
    event: text_delta
    data: {"session":"s1","seq":7,"turn":2,"at":1763179200125,"text":"Hello"}

`event` is the event's kind in snake case; `at` is in milliseconds since 1970. A gap has no `id`: whoever comes back
after it gets what was missing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trunkline.base import jsontext, shapes
from trunkline.core.events import EVENTS, Envelope, Event, Gap, Steered, TextDelta, ThinkingDelta, TurnStarted

_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")

#: What each kind of event is called.
NAMES: Mapping[type[Event], str] = {kind: _CAPITAL.sub("_", kind.__name__).lower() for kind in EVENTS}


def encode(envelope: Envelope) -> bytes:
    """One event."""
    event = envelope.event
    session, seq = jsontext.quote_ascii(envelope.session), envelope.seq
    head = (
        f"id: {seq}\nevent: {NAMES[type(event)]}\n"
        f'data: {{"session":{session},"seq":{seq},"turn":{envelope.turn},"at":{round(envelope.at * 1000)}'
    )
    if isinstance(event, TextDelta | ThinkingDelta):
        # They come by the thousand, and are written without a detour through dictionaries.
        try:
            return f'{head},"text":{jsontext.quote(event.text)}}}\n\n'.encode()
        except UnicodeEncodeError:
            return f'{head},"text":{jsontext.quote_ascii(event.text)}}}\n\n'.encode()
    members = jsontext.dumps(_members(event))[1:]
    return head.encode() + (b"," if len(members) > 1 else b"") + members + b"\n\n"


def encode_gap(session: str, gap: Gap) -> bytes:
    """Events that are missing."""
    data = jsontext.dumps({"session": session, "first": gap.first, "last": gap.last})
    return b"event: gap\ndata: " + data + b"\n\n"


def _members(event: Event) -> Mapping[str, Any]:
    """The members of an event. Those of a message stand beside the others."""
    if isinstance(event, TurnStarted | Steered):
        message = event.message
        members = {"message": message.text, "by": message.sender or "", "files": list(message.files)}
        return members if message.id is None else {**members, "msg_id": message.id}
    return shapes.encode(event)
