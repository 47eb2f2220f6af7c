"""The messages of a stdio server: one JSON object per line. Sans-IO.

Servers print things that are no messages, and messages that are not quite JSON. What can be understood is; the rest is
`None`, and the reader goes on. Only an answer is never passed over: somebody waits for it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from trunkline.base import jsontext
from trunkline.base.cutting import cut_between_words
from trunkline.base.values import Value

if TYPE_CHECKING:
    from mcp_types import JSONRPCMessage

#: The longest line. A picture of 20 MB in base64 still fits.
MAX_LINE_BYTES = 1 << 25

#: The members of an answer beside what it says.
_ABOUT = rb'(?:(?P<version>"jsonrpc"\s*:\s*"2\.0")|"id"\s*:\s*(?:(?P<number>\d{1,18})|"(?P<text>[^"\\]{1,200})"))'
#: How answers begin. What asks for something has `method` here.
_BEGINNING = re.compile(rb'\s*\{(?:\s*%s\s*,)*\s*"(?:result|error)"\s*:' % _ABOUT)
#: How those end that say last what they answer. The last bracket is that of the whole message.
_END = re.compile(rb"(?:,\s*%s\s*)+\}\s*\Z" % _ABOUT)
#: Enough for such an end.
_END_BYTES = 500
#: Of the reason. Some errors quote all that they did not understand.
_REASON_CHARS = 200


class UnreadableAnswer(Value):
    """An answer that cannot be read, and that does not say to which call."""

    reason: str


def decode(line: bytes) -> JSONRPCMessage | UnreadableAnswer | None:
    """The message that a line holds, or `None`. An answer that cannot be read is an error of the call it answers."""
    from mcp_types import jsonrpc_message_adapter
    from pydantic import ValidationError

    if not line.lstrip().startswith(b"{"):
        return None
    try:
        value = jsontext.loads(line.decode("utf-8", "replace").encode())
        return jsonrpc_message_adapter.validate_python(mended(value), by_name=False)
    except ValidationError:
        return _unread(line, "it is not what MCP allows")
    except ValueError as error:
        return _unread(line, cut_between_words(str(error), _REASON_CHARS))


def _unread(line: bytes, reason: str) -> JSONRPCMessage | UnreadableAnswer | None:
    from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError

    beginning = _BEGINNING.match(line)
    if beginning is None:
        return None
    about = _said(beginning) | _said(_END.search(line[-_END_BYTES:]))
    if "version" not in about:
        # What begins with `error` may be a line of a log.
        return None
    if "number" not in about and "text" not in about:
        return UnreadableAnswer(reason)
    request = int(about["number"]) if "number" in about else about["text"].decode("utf-8", "replace")
    words = f"The server has answered, but the answer cannot be read: {reason}."
    return JSONRPCError(jsonrpc="2.0", id=request, error=ErrorData(code=PARSE_ERROR, message=words))


def _said(found: re.Match[bytes] | None) -> dict[str, bytes]:
    return {name: value for name, value in found.groupdict().items() if value is not None} if found else {}


def encode(message: JSONRPCMessage) -> bytes:
    """The line of a message."""
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"


def mended(value: Any) -> Any:
    """A JSON value with U+FFFD for every lone surrogate: the SDK refuses those, and a call would wait for ever."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {mended(key): mended(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [mended(item) for item in value]
    return value
