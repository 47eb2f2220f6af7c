"""Lines of JSON-RPC 2.0, as MCP has them on pipes. Sans-IO.

What is no message is answered by an error in the protocol's own form, and the next line is read as usual.
"""

from __future__ import annotations

from typing import Any

from trunkline.base import jsontext
from trunkline.base.lines import LineSplitter, OverlongLine
from trunkline.base.values import Value

#: The longest line, and the largest message over HTTP. Messages are text for a model; 4 MiB is the SDK's own limit.
MAX_LINE = 4 * 1024 * 1024

#: The most members and items of one message: far beyond any, and parsed in a few milliseconds.
MAX_VALUES = 100_000

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
#: MCP's own, of versions before 2026-07-28.
RESOURCE_NOT_FOUND = -32002

#: What a value of JSON-RPC may be named by.
RequestId = str | int


class BrokenMessage(Value):
    """Something that is no message, and how to answer it. The id is there if it could be read."""

    code: int
    message: str
    id: RequestId | None = None


class LineDecoder:
    """Bytes into messages."""

    def __init__(self, max_line: int = MAX_LINE) -> None:
        self._max_line = max_line
        self._lines = LineSplitter(max_line)

    def feed(self, data: bytes) -> list[dict[str, Any] | BrokenMessage]:
        """The messages that some bytes complete."""
        return [
            self._decoded(line) for line in self._lines.feed(data) if isinstance(line, OverlongLine) or line.strip()
        ]

    def finish(self) -> list[dict[str, Any] | BrokenMessage]:
        """The stream has ended: what is left is a message if anything is."""
        return [self._decoded(line) for line in self._lines.finish() if isinstance(line, OverlongLine) or line.strip()]

    def _decoded(self, line: bytes | OverlongLine) -> dict[str, Any] | BrokenMessage:
        if isinstance(line, OverlongLine):
            return BrokenMessage(PARSE_ERROR, f"A message must not be longer than {self._max_line} bytes.")
        try:
            value = jsontext.loads(line, max_values=MAX_VALUES)
        except ValueError as error:
            return BrokenMessage(PARSE_ERROR, f"This is not JSON: {error}.")
        return checked(value)


def checked(value: Any) -> dict[str, Any] | BrokenMessage:
    """A request, a notification or a response; or what is wrong with it."""
    if isinstance(value, list):
        return BrokenMessage(INVALID_REQUEST, "Batches are not supported: send one message per line.")
    if not isinstance(value, dict):
        return BrokenMessage(INVALID_REQUEST, "A message must be an object.")
    given = value.get("id")
    known = given if _is_id(given) else None
    if value.get("jsonrpc") != "2.0":
        return BrokenMessage(INVALID_REQUEST, 'A message must have `"jsonrpc": "2.0"`.', known)
    if "id" in value and known is None and not ("error" in value and given is None):
        return BrokenMessage(INVALID_REQUEST, "`id` must be a string or an integer.")
    if "method" not in value:
        if ("result" in value or "error" in value) and "id" in value:
            return value
        return BrokenMessage(INVALID_REQUEST, "`method` is missing.", known)
    if not isinstance(value["method"], str):
        return BrokenMessage(INVALID_REQUEST, "`method` must be a string.", known)
    if not isinstance(value.get("params", {}), dict):
        return BrokenMessage(INVALID_PARAMS if "id" in value else INVALID_REQUEST, "`params` must be an object.", known)
    return value


def encode(message: dict[str, Any]) -> bytes:
    """A message as a line."""
    return jsontext.dumps(message) + b"\n"


def encode_error(broken: BrokenMessage) -> bytes:
    """The answer to something that is no message."""
    error = {"code": broken.code, "message": broken.message}
    return encode({"jsonrpc": "2.0", "id": broken.id, "error": error})


def _is_id(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)
