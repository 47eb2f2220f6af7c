"""AgentProc 0.4 as JSON Schema (2020-12): what a conforming bridge and a conforming agent write.

Both ends are more lenient than that with what others write (`codec_ndjson`), and both ignore members that are not named
here. 0.1 is no JSON: environment variables in, lines with a prefix out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.wires import line_schema
from trunkline.wires.agentproc.codec import MAX_SESSION_ID, SESSION_ID_PATTERN
from trunkline.wires.agentproc.codec_ndjson import MAX_ID, PROTOCOL_VERSION
from trunkline.wires.line_schema import Direction, Union

#: A name, not a place: nothing has to be fetched to use the schema.
ID = f"urn:trunkline:schema:agentproc:{PROTOCOL_VERSION}"

_TITLES: dict[Direction, str] = {
    "events": "AgentProc: what an agent writes to its standard output",
    "commands": "AgentProc: what a bridge writes to an agent's standard input",
    "both": "AgentProc: every line, in both directions",
}

_TEXT = {"type": "string"}
_OBJECT = {"type": "object"}
_REQUEST_ID = {"type": "string", "minLength": 1, "maxLength": MAX_ID, "pattern": r"^[^\s\u0000-\u001f\u007f]+$"}
_NEW_ID = {"type": "string", "maxLength": MAX_SESSION_ID, "pattern": f"^{SESSION_ID_PATTERN}$"}
_USAGE_COUNTS = (
    "input_tokens", "output_tokens", "total_tokens", "cache_read_input_tokens", "cache_creation_input_tokens",
    "reasoning_tokens", "duration_ms", "cost_usd",
)  # fmt: skip

#: What both directions have.
_SHARED: Mapping[Union, Mapping[str, Any]] = {
    "event": {
        "usage": {
            "description": "What the turn has cost. Members that are not named here are passed on.",
            "type": "object",
            "properties": {name: {"type": "number", "minimum": 0} for name in _USAGE_COUNTS},
        },
        "session_id": {
            "description": "The agent's own id of the conversation. The first one of a turn counts.",
            **_NEW_ID,
        },
    },
    "command": {
        "attachment": {
            "description": "A file that comes with the message.",
            "type": "object",
            "properties": {
                "kind": {"description": "`image`, `file`, `audio`, `video`, or another.", "type": "string"},
                "url": {"description": "`file:`, `http:`, `https:` or `data:`.", "type": "string", "minLength": 1},
                "filename": _TEXT,
                "mime_type": _TEXT,
                "size": {"type": "integer", "minimum": 0},
            },
            "required": ["kind", "url"],
        },
    },
}

_SESSION = {"$ref": "#/$defs/session_id"}
_USAGE = {"$ref": "#/$defs/usage"}


def _message(type: str, text: str, required: Mapping[str, Any], optional: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "title": type,
        "description": text,
        "type": "object",
        "properties": {"type": {"const": type}, **required, **optional},
        "required": ["type", *required],
    }


_MESSAGES: Mapping[Union, tuple[dict[str, Any], ...]] = {
    "event": (
        _message(
            "partial",
            "A piece of the answer, to be shown at once.",
            {"text": _TEXT},
            {
                "role": {"description": "`output` if absent, `thinking`, or another.", "type": "string"},
                "session_id": _SESSION,
            },
        ),
        _message(
            "result",
            "The whole answer, at most once.",
            {"text": _TEXT},
            {"usage": _USAGE, "session_id": _SESSION},
        ),
        _message(
            "error",
            "The turn has failed; the text is for the user. What comes after it is ignored.",
            {"message": _TEXT},
            {"usage": _USAGE, "session_id": _SESSION},
        ),
        _message(
            "permission_request",
            "The agent waits until it may use a tool. Only in a turn with `permission`.",
            {"request_id": _REQUEST_ID, "tool_name": {"type": "string", "minLength": 1}, "input": _OBJECT},
            {"description": _TEXT, "tool_use_id": _TEXT, "session_id": _SESSION},
        ),
    ),
    "command": (
        _message(
            "turn",
            "The message, and all that belongs to it: the first line of standard input.",
            {
                "message": _TEXT,
                "session_id": {"description": "What the agent said last time; empty: a new session.", "type": "string"},
                "session_name": _TEXT,
                "protocol_version": {"const": PROTOCOL_VERSION},
            },
            {
                "from_user": _TEXT,
                "attachments": {"type": "array", "items": {"$ref": "#/$defs/attachment"}},
                "permission": {"description": "The bridge answers permission requests.", "type": "boolean"},
            },
        ),
        _message(
            "permission_response",
            "The answer to a `permission_request`.",
            {"request_id": _REQUEST_ID, "behavior": {"enum": ["allow", "deny"]}},
            {"message": _TEXT, "updated_input": _OBJECT},
        ),
    ),
}


def document(direction: Direction = "both") -> dict[str, Any]:
    """The schema of one line; see `line_schema`."""
    messages = {union: {each["title"]: each for each in said} for union, said in _MESSAGES.items()}
    return line_schema.document(ID, _TITLES[direction], direction, messages, _SHARED)
