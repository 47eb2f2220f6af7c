"""The messages of a stdio server: one JSON object per line. Sans-IO.

Servers print things that are no messages, and messages that are not quite JSON. What can be understood is; the rest is
`None`, and the reader goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trunkline.base import jsontext

if TYPE_CHECKING:
    from mcp_types import JSONRPCMessage

#: The longest line. A picture of 20 MB in base64 still fits.
MAX_LINE_BYTES = 1 << 25


def decode(line: bytes) -> JSONRPCMessage | None:
    """The message that a line holds, or `None`."""
    from mcp_types import jsonrpc_message_adapter

    if not line.lstrip().startswith(b"{"):
        return None
    try:
        value = jsontext.loads(line.decode("utf-8", "replace").encode())
        return jsonrpc_message_adapter.validate_python(mended(value), by_name=False)
    except ValueError:
        return None


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
