"""AgentProc 0.4 on the wire: one JSON object to a line, both ways. Sans-IO.

The bridge writes a `turn` to the agent's standard input, and later `permission_response`s if it said that it would
answer requests. The agent writes `partial`, `result`, `error` and `permission_request`, each of which may carry the
`session_id`; the first one counts. Lines that are none of these are left out with a warning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from trunkline.base import jsontext
from trunkline.base.cutting import cut_between_words
from trunkline.base.lines import LineSplitter, OverlongLine
from trunkline.core.faults import RemoteProtocolError
from trunkline.wires.agentproc.codec import (
    LOOKED_AT_BYTES,
    MAX_LINE,
    SHOWN_CHARS,
    is_session_id,
    refused_session_id,
    too_long,
    whole,
)
from trunkline.wires.agentproc.messages import (
    DEFAULT_SESSION_NAME,
    UNANSWERABLE,
    Attachment,
    Error,
    Ignored,
    Partial,
    PermissionRequest,
    PermissionResponse,
    Result,
    Said,
    SessionId,
    TurnRequest,
)

PROTOCOL_VERSION = "0.4"

EVENT_TYPES = frozenset(("partial", "result", "error", "permission_request"))

#: The most members and items of one line: far beyond any event, and parsed in a few milliseconds.
MAX_VALUES = 100_000
#: The longest request id.
MAX_ID = 1024
#: Lines that are looked at a second time, and digits of numbers that are read there.
_ODD_BYTES = 4 * 1024 * 1024
_ODD_DIGITS = 300
#: As a text, compiled when first needed.
_ASKS = rb'\s*\{[^{[]*"type"\s*:\s*"permission_request"'


class NdjsonReader:
    """Reads the events of a 0.4 agent."""

    def __init__(self, max_line: int = MAX_LINE) -> None:
        self._lines = LineSplitter(max_line, LOOKED_AT_BYTES)
        self._session = ""
        self._has_spoken = False
        self._stranger: str | None = None

    def feed(self, data: bytes) -> list[Said]:
        """Take some bytes and give what they complete."""
        return [said for line in self._lines.feed(data) for said in self.read(line)]

    def finish(self) -> list[Said]:
        """The output has ended: a last line may lack its line feed.

        An agent that said a lot and nothing of it in this protocol has failed: silence would be no answer.
        """
        said = [said for line in self._lines.finish() for said in self.read(line)]
        if self._stranger is not None and not self._has_spoken:
            said.append(
                Error(
                    f"The agent said nothing that protocol {PROTOCOL_VERSION} knows; it may speak another one. Set "
                    f'`protocol: "0.1"` (or `auto`) in its profile. Its first line: `{self._stranger}`'
                )
            )
        return said

    def read(self, line: bytes | OverlongLine) -> list[Said]:
        """What one line says."""
        if isinstance(line, OverlongLine):
            return [too_long(line), *_lost(line.head)]
        if not line.strip():
            return []
        event = event_of(line)
        if event is None:
            shown = cut_between_words(line.strip()[: 4 * SHOWN_CHARS + 4].decode("utf-8", "replace"), SHOWN_CHARS)
            self._stranger = self._stranger or shown
            left_out = Ignored(f"a line that is not an event of protocol {PROTOCOL_VERSION} was ignored: `{shown}`")
            return [left_out, *_lost(line)]
        self._has_spoken = True
        said = _said(event)
        identified = self._identified(event.get("session_id"))
        return [said] if identified is None else [identified, said]

    def _identified(self, value: Any) -> Said | None:
        """The first id counts."""
        if not isinstance(value, str) or not value or value == self._session:
            return None
        if self._session:
            return Ignored(f"another session id was ignored: the first one, `{self._session}`, counts")
        if not is_session_id(value):
            return Ignored(refused_session_id(value))
        self._session = value
        return SessionId(value)


def _lost(line: bytes) -> list[Said]:
    """What a line means that cannot be read: it may have been a question."""
    return [UNANSWERABLE] if re.match(_ASKS, line[:LOOKED_AT_BYTES]) else []


def event_of(line: bytes) -> dict[str, Any] | None:
    """The JSON object of a line, if it is one of the protocol's events."""
    try:
        data = jsontext.loads(line, max_values=MAX_VALUES)
    except ValueError:
        data = _odd_numbers(line)
    if not isinstance(data, dict):
        return None
    kind = data.get("type")
    return data if isinstance(kind, str) and kind in EVENT_TYPES else None


def _odd_numbers(line: bytes) -> Any:
    """A line that is JSON but for its numbers (`NaN`, or thousands of digits), which then are null: bad accounting is
    no reason to miss an answer."""
    if len(line) > _ODD_BYTES:
        return None
    from json import JSONDecoder

    def number(text: str) -> float | None:
        return float(text) if len(text) < _ODD_DIGITS else None

    try:
        return JSONDecoder(parse_constant=lambda name: None, parse_int=number, parse_float=number).decode(line.decode())
    except (ValueError, RecursionError):
        return None


def _said(event: dict[str, Any]) -> Said:
    match event["type"]:
        case "partial":
            return Partial(_text(event.get("text")), _text(event.get("role")) or "output")
        case "result":
            return Result(_text(event.get("text")), _object(event.get("usage")))
        case "error":
            return Error(_text(event.get("message")), _object(event.get("usage")))
        case _:
            return _request(event)


def _request(event: dict[str, Any]) -> Said:
    """A request that is malformed names no tool; one whose id cannot be answered has none."""
    request_id = event.get("request_id")
    if not isinstance(request_id, str) or not _is_request_id(request_id):
        return UNANSWERABLE
    tool, given = event.get("tool_name"), event.get("input")
    if not isinstance(tool, str) or not tool or not isinstance(given, dict):
        return PermissionRequest(request_id, "", {})
    return PermissionRequest(
        request_id, whole(tool), given, _text(event.get("description")), _text(event.get("tool_use_id"))
    )


def _is_request_id(text: str) -> bool:
    return 0 < len(text) <= MAX_ID and not any(c.isspace() or not c.isprintable() for c in text)


def _text(value: Any) -> str:
    return whole(value) if isinstance(value, str) else ""


def _object(value: Any) -> Mapping[str, Any] | None:
    return value if isinstance(value, dict) else None


# What a bridge writes, and an agent reads


def encode_turn(turn: TurnRequest) -> bytes:
    """The line that tells an agent its turn. What is not in play is left out: its presence is the feature."""
    data: dict[str, Any] = {
        "type": "turn",
        "message": whole(turn.message),
        "session_id": turn.session_id,
        "session_name": turn.session_name,
        "protocol_version": PROTOCOL_VERSION,
    }
    if turn.from_user:
        data["from_user"] = turn.from_user
    if turn.attachments:
        data["attachments"] = [_attachment_object(attachment) for attachment in turn.attachments]
    if turn.permission:
        data["permission"] = True
    return jsontext.dumps(data) + b"\n"


def decode_turn(line: bytes) -> TurnRequest:
    """The turn that a line tells.

    Raises:
        RemoteProtocolError: it tells none.
    """
    data = _line(line, "turn")
    message = data.get("message")
    if not isinstance(message, str):
        raise RemoteProtocolError("Invalid `turn`: `message` must be a string")
    listed = data.get("attachments")
    items = listed if isinstance(listed, list) else []
    return TurnRequest(
        message=message,
        session_id=_text(data.get("session_id")),
        session_name=_text(data.get("session_name")) or DEFAULT_SESSION_NAME,
        from_user=_text(data.get("from_user")),
        attachments=tuple(found for item in items if (found := _attachment(item)) is not None),
        permission=data.get("permission") is True,
    )


def encode_response(response: PermissionResponse) -> bytes:
    """The line that answers a permission request."""
    data: dict[str, Any] = {
        "type": "permission_response",
        "request_id": response.request_id,
        "behavior": response.behavior,
    }
    if response.message:
        data["message"] = response.message
    if response.updated_input is not None:
        data["updated_input"] = dict(response.updated_input)
    return jsontext.dumps(data) + b"\n"


def decode_response(line: bytes) -> PermissionResponse:
    """The answer to a permission request. Whatever is not a clear yes is a no: that is `allow`, and where there is an
    `updated_input`, it is an object.

    Raises:
        RemoteProtocolError: it answers none.
    """
    data = _line(line, "permission_response")
    request_id = data.get("request_id")
    if not isinstance(request_id, str):
        raise RemoteProtocolError("Invalid `permission_response`: `request_id` must be a string")
    updated = data.get("updated_input")
    is_yes = data.get("behavior") == "allow" and isinstance(updated, dict | None)
    behavior: Literal["allow", "deny"] = "allow" if is_yes else "deny"
    return PermissionResponse(request_id, behavior, _text(data.get("message")), _object(updated))


def _line(line: bytes, type: str) -> dict[str, Any]:
    try:
        data = jsontext.loads(line, max_values=MAX_VALUES)
    except ValueError as error:
        raise RemoteProtocolError(f"Malformed JSON: {error}") from None
    if not isinstance(data, dict) or data.get("type") != type:
        raise RemoteProtocolError(f"Expected an object of type `{type}`")
    return data


def _attachment_object(attachment: Attachment) -> dict[str, str]:
    named = {"filename": attachment.name} if attachment.name else {}
    return {"kind": attachment.type, "url": attachment.url, **named}


def _attachment(item: Any) -> Attachment | None:
    if not isinstance(item, dict):
        return None
    kind, url = item.get("kind"), item.get("url")
    if not isinstance(kind, str) or not isinstance(url, str) or not kind or not url:
        return None
    return Attachment(kind, url, _text(item.get("filename")))


# What an agent writes


def encode_partial(text: str, role: str = "output", session_id: str = "") -> bytes:
    """The line of a piece of the answer, or of the reasoning with the role `thinking`."""
    extra = {} if role == "output" else {"role": role}
    return _event("partial", {"text": text, **extra}, session_id)


def encode_result(text: str, session_id: str = "", usage: Mapping[str, Any] | None = None) -> bytes:
    """The line of the whole answer."""
    return _event("result", {"text": text, **({"usage": dict(usage)} if usage else {})}, session_id)


def encode_error(message: str, session_id: str = "", usage: Mapping[str, Any] | None = None) -> bytes:
    """The line of a failure."""
    return _event("error", {"message": message, **({"usage": dict(usage)} if usage else {})}, session_id)


def encode_request(request: PermissionRequest, session_id: str = "") -> bytes:
    """The line of a request to use a tool."""
    data: dict[str, Any] = {
        "request_id": request.request_id,
        "tool_name": request.tool_name,
        "input": dict(request.input),
    }
    if request.description:
        data["description"] = request.description
    if request.tool_use_id:
        data["tool_use_id"] = request.tool_use_id
    return _event("permission_request", data, session_id)


def _event(type: str, data: dict[str, Any], session_id: str) -> bytes:
    identified = {"session_id": session_id} if session_id else {}
    return jsontext.dumps({"type": type, **data, **identified}) + b"\n"
