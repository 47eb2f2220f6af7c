"""Lines to messages and back. Sans-IO: no files, processes, clocks or tasks.

`CommandReader` is what an agent reads its host with, `EventReader` what a host reads an agent with; both are fed bytes
and give messages and faults, in order. `encode` is for both directions.

Agents get strict rules, because a host that errs must learn of it: whatever is not a good command is one fault.
Hosts get lenient ones, because agents in the field leave things out and print what is not protocol.
"""

from __future__ import annotations

from typing import Any

from trunkline.base import jsontext, shapes
from trunkline.base.jsontext import quote, quote_ascii
from trunkline.base.lines import LineSplitter, OverlongLine
from trunkline.base.values import Value
from trunkline.base.vocabulary import IMAGE_INPUT, MODES
from trunkline.core.faults import LocalProtocolError, RemoteProtocolError
from trunkline.wires.jsonstream.messages import (
    COMMANDS,
    EVENTS,
    Command,
    Event,
    Message,
    TextDelta,
    UserMessage,
)

#: The longest line that is read, in bytes: room for a large pasted file, and no way to exhaust memory.
MAX_LINE = 16 * 1024 * 1024

#: The most members and items of one line: far beyond any command, and parsed in a few milliseconds.
MAX_VALUES = 100_000

#: The longest `msg_id`, in characters. It is repeated on every line of the answer.
MAX_MSG_ID = 1024

#: How much of a line is repeated in an error or a log.
_SHOWN_BYTES = 80


class Noise(Value):
    """A line on an agent's standard output that is not protocol: a banner, a warning of some library."""

    line: bytes


class CommandReader:
    """Reads the commands of a host."""

    def __init__(self, max_line: int = MAX_LINE) -> None:
        self._lines = LineSplitter(max_line)
        self._max_line = max_line

    def feed(self, data: bytes) -> list[Command | RemoteProtocolError]:
        """Take some bytes and give what they complete. Each bad line is one fault; the next line is a new start."""
        return self._read(self._lines.feed(data))

    def finish(self) -> list[Command | RemoteProtocolError]:
        """The host has closed the stream: a last line may lack its line feed."""
        return self._read(self._lines.finish())

    def _read(self, lines: list[bytes | OverlongLine]) -> list[Command | RemoteProtocolError]:
        found: list[Command | RemoteProtocolError] = []
        for line in lines:
            if isinstance(line, OverlongLine):
                found.append(too_long(line, self._max_line))
            elif line.strip():
                try:
                    found.append(decode_command(line))
                except RemoteProtocolError as error:
                    found.append(error)
        return found


class EventReader:
    """Reads the events of an agent: any program that speaks the protocol, whatever else it prints."""

    def __init__(self, max_line: int = MAX_LINE) -> None:
        self._lines = LineSplitter(max_line)
        self._max_line = max_line

    def feed(self, data: bytes) -> list[Event | Noise | RemoteProtocolError]:
        """Take some bytes and give what they complete.

        A line that is no JSON object is noise; one that claims a known type and breaks its shape is a fault. Events
        of unknown types are left out: a newer agent may send them.
        """
        return self._read(self._lines.feed(data))

    def finish(self) -> list[Event | Noise | RemoteProtocolError]:
        """The agent has closed the stream. A line that was cut off in the middle is noise."""
        return self._read(self._lines.finish())

    def _read(self, lines: list[bytes | OverlongLine]) -> list[Event | Noise | RemoteProtocolError]:
        found: list[Event | Noise | RemoteProtocolError] = []
        for line in lines:
            if isinstance(line, OverlongLine):
                found.append(too_long(line, self._max_line))
                continue
            if not line.strip():
                continue
            try:
                event = decode_event(line)
            except RemoteProtocolError as error:
                found.append(error)
            except ValueError:
                found.append(Noise(line))
            else:
                if event is not None:
                    found.append(event)
        return found


def decode_command(line: bytes) -> Command:
    """One command.

    Raises:
        RemoteProtocolError: the line is not one; the text says why.
    """
    try:
        data = jsontext.loads(line, max_values=MAX_VALUES)
    except ValueError as error:
        raise RemoteProtocolError(f"Malformed JSON: {error}") from None
    if not isinstance(data, dict):
        raise RemoteProtocolError("A command must be a JSON object")
    name = data.get("type")
    if not isinstance(name, str):
        raise RemoteProtocolError("`type` is missing" if name is None else "`type` must be a string")
    kind = COMMANDS.get(name)
    if kind is None:
        raise RemoteProtocolError(f"Unknown command type: {name[:_SHOWN_BYTES]}")
    if kind is UserMessage and data.get("input") is None and "content" in data:
        data = data | {"input": data["content"]}
    try:
        command = shapes.decode(kind, data)
    except shapes.ShapeError as error:
        raise RemoteProtocolError(f"Invalid `{name}`: {error}") from None
    if isinstance(command, UserMessage):
        if not command.msg_id:
            raise RemoteProtocolError("Invalid `message`: `msg_id` is empty")
        if len(command.msg_id) > MAX_MSG_ID:
            raise RemoteProtocolError(f"Invalid `message`: `msg_id` is longer than {MAX_MSG_ID} characters")
    return command


def decode_event(line: bytes) -> Event | None:
    """One event, or None when its type is not known.

    Raises:
        ValueError: the line is not an object with a `type`: noise.
        RemoteProtocolError: it is one, but without what its type needs.
    """
    data = jsontext.loads(line, max_values=MAX_VALUES)
    if not isinstance(data, dict) or not isinstance(data.get("type"), str):
        raise ValueError("not an event")
    kind = EVENTS.get(data["type"])
    if kind is None:
        return None
    try:
        return shapes.decode(kind, _completed(data))
    except shapes.ShapeError as error:
        raise RemoteProtocolError(f"Invalid `{kind.type}`: {error}") from None


def encode(message: Message) -> bytes:
    """The line of a message, with its line feed.

    Raises:
        LocalProtocolError: it holds something that is not JSON.
    """
    if type(message) is TextDelta:
        return text_line("text_delta", message.text, message.msg_id)
    try:
        return jsontext.dumps({"type": message.type, **shapes.encode(message)}) + b"\n"
    except TypeError as error:
        raise LocalProtocolError(f"`{message.type}` cannot be written: {error}") from None


def text_line(kind: str, text: str, msg_id: str) -> bytes:
    """The line of a `text_delta` or `thinking`, which come by the thousand: no message object, no dictionary."""
    try:
        return f'{{"type":"{kind}","text":{quote(text)},"msg_id":{quote(msg_id)}}}\n'.encode()
    except UnicodeEncodeError:
        return f'{{"type":"{kind}","text":{quote_ascii(text)},"msg_id":{quote_ascii(msg_id)}}}\n'.encode()


def too_long(line: OverlongLine, limit: int) -> RemoteProtocolError:
    """The fault of a line over the limit."""
    return RemoteProtocolError(f"Line of {line.size} bytes exceeds the limit of {limit} bytes")


#: What agents in the field leave out, or send as null, and what it then means.
_ABSENT: dict[str, dict[str, Any]] = {
    "ready": {"version": "0.1.0", "capabilities": {}},
    "stream_start": {"msg_id": ""},
    "text_delta": {"msg_id": ""},
    "thinking": {"msg_id": ""},
    "tool_request": {"msg_id": ""},
    "tool_running": {"msg_id": "", "tool_name": ""},
    "tool_result": {"msg_id": "", "tool_name": "", "output": "", "output_type": "text", "status": "success"},
    "tool_cancelled": {"msg_id": "", "reason": ""},
    "stream_end": {"msg_id": ""},
    "error": {"msg_id": None, "error": {}},
    "info": {"msg_id": ""},
    "mcp_ready": {"tools": []},
}
_CAPABILITIES = ("tool_approval", "thinking", "mcp")
_TOOL: dict[str, Any] = {"category": "exec", "args": {}, "description": ""}
_ERROR: dict[str, Any] = {"code": "internal_error", "message": "", "retryable": False}

#: Names with a fixed set, per member: what is not in it has the safest meaning. An unknown tool may do anything.
_NAMES: dict[str, tuple[tuple[str, ...], str]] = {
    "category": (("info", "edit", "exec", "mcp"), "exec"),
    "status": (("success", "error"), "error"),
    "output_type": (("text", "diff", "image"), "text"),
    "code": (("provider_error", "tool_error", "config_error", "protocol_error", "internal_error"), "internal_error"),
}


def _completed(data: dict[str, Any]) -> dict[str, Any]:
    """What an agent said, with what it left out filled in, and what is beside the point left out."""
    data = _filled(data, _ABSENT.get(data["type"], {}))
    match data["type"]:
        case "ready" | "config_changed":
            said = data.get("capabilities")
            data["capabilities"] = _known_capabilities(said if isinstance(said, dict) else {})
            if not isinstance(data.get("version"), str):
                data["version"] = str(data.get("version"))
        case "tool_request" if isinstance(data.get("tool"), dict):
            data["tool"] = _filled(data["tool"], _TOOL)
        case "stream_end":
            data["usage"] = _known_usage(data.get("usage"))
        case "error":
            body = data["error"]
            data["error"] = _filled(body if isinstance(body, dict) else {"message": str(body)}, _ERROR)
            data["error"]["retryable"] = data["error"]["retryable"] is True
    return data


def _filled(data: dict[str, Any], absent: dict[str, Any]) -> dict[str, Any]:
    filled = absent | {name: member for name, member in data.items() if member is not None}
    for name, (known, otherwise) in _NAMES.items():
        if name in filled and filled[name] not in known:
            filled[name] = otherwise
    return filled


def _known_usage(said: Any) -> dict[str, int] | None:
    """The counts that are counts. Bad accounting is no reason to miss the end of an answer."""
    if not isinstance(said, dict):
        return None
    return {name: count for name, count in said.items() if type(count) is int}


def _known_capabilities(said: dict[str, Any]) -> dict[str, Any]:
    """What is understood of an agent's capabilities: newer agents announce more, and in other types."""
    known: dict[str, Any] = {name: said.get(name) is True for name in _CAPABILITIES}
    if said.get("image_input") in tuple(IMAGE_INPUT):
        known["image_input"] = said["image_input"]
    if isinstance(said.get("effort"), bool):
        known["effort"] = said["effort"]
    if isinstance(said.get("effort_levels"), list):
        known["effort_levels"] = [level for level in said["effort_levels"] if isinstance(level, str)]
    if isinstance(said.get("modes"), list):
        known["modes"] = [mode for mode in said["modes"] if mode in MODES]
    if isinstance(said.get("steering"), bool):
        known["steering"] = said["steering"]
    if said.get("current_mode") in MODES:
        known["current_mode"] = said["current_mode"]
    if said.get("sandbox") in ("on", "off"):
        known["sandbox"] = said["sandbox"]
    return known
