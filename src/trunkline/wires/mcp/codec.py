"""Lines of JSON-RPC 2.0, as MCP has them on pipes. Sans-IO.

What is no message is answered by an error in the protocol's own form, and the next line is read as usual.
"""

from __future__ import annotations

from typing import Any

from trunkline.base import jsontext
from trunkline.base.values import Value
from trunkline.wires import jsonrpc
from trunkline.wires.jsonrpc import INVALID_PARAMS, INVALID_REQUEST

#: The longest line, and the largest message over HTTP. Messages are text for a model; 4 MiB is the SDK's own limit.
MAX_LINE = 4 * 1024 * 1024

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
        self._lines = jsonrpc.ObjectLines(max_line)

    def feed(self, data: bytes) -> list[dict[str, Any] | BrokenMessage]:
        """The messages that some bytes complete."""
        return [_checked(each) for each in self._lines.feed(data)]

    def finish(self) -> list[dict[str, Any] | BrokenMessage]:
        """The stream has ended: what is left is a message if anything is."""
        return [_checked(each) for each in self._lines.finish()]


def decode(data: bytes) -> dict[str, Any] | BrokenMessage:
    """One message: a request, a notification or a response; or what is wrong with it."""
    return _checked(jsonrpc.parse(data))


def _checked(value: dict[str, Any] | jsonrpc.NoObject) -> dict[str, Any] | BrokenMessage:
    if isinstance(value, jsonrpc.NoObject):
        return BrokenMessage(value.code, f"{value.message}.")
    given = value.get("id")
    known = given if _is_id(given) else None
    if "method" not in value and ("result" in value or "error" in value):
        return _response(value, known)
    if value.get("jsonrpc") != "2.0":
        return BrokenMessage(INVALID_REQUEST, 'A message must have `"jsonrpc": "2.0"`.', known)
    if "id" in value and known is None:
        return BrokenMessage(INVALID_REQUEST, "`id` must be a string or an integer.")
    if "method" not in value:
        return BrokenMessage(INVALID_REQUEST, "`method` is missing.", known)
    if not isinstance(value["method"], str):
        return BrokenMessage(INVALID_REQUEST, "`method` must be a string.", known)
    if not isinstance(value.get("params", {}), dict):
        return BrokenMessage(INVALID_PARAMS if "id" in value else INVALID_REQUEST, "`params` must be an object.", known)
    return value


def _response(value: dict[str, Any], id: RequestId | None) -> dict[str, Any] | BrokenMessage:
    """An answer to a request of ours. One that says nothing is an error, so that nobody waits for it for ever."""
    if value.get("error", "") is None and "result" in value:
        # Strictly, that is not allowed; and clear.
        value = {key: each for key, each in value.items() if key != "error"}
    error = value.get("error")
    is_error = isinstance(error, dict) and type(error.get("code")) is int and isinstance(error.get("message"), str)
    if id is None:
        # Of something that the client could not read.
        return value if is_error else BrokenMessage(INVALID_REQUEST, "`id` must be a string or an integer.")
    if is_error or ("error" not in value and isinstance(value["result"], dict)):
        return value | {"jsonrpc": "2.0"}
    return {"jsonrpc": "2.0", "id": id, "error": {"code": INVALID_REQUEST, "message": "The answer says nothing."}}


def encode(message: dict[str, Any]) -> bytes:
    """A message as a line."""
    return jsontext.dumps(message) + b"\n"


def error_message(broken: BrokenMessage) -> dict[str, Any]:
    """The answer to something that is no message."""
    return {"jsonrpc": "2.0", "id": broken.id, "error": {"code": broken.code, "message": broken.message}}


def encode_error(broken: BrokenMessage) -> bytes:
    """That answer as a line."""
    return encode(error_message(broken))


def _is_id(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)
