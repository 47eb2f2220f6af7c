"""JSON-RPC 2.0, as far as ACP and MCP have it in common: its numbers, and objects out of lines. Sans-IO.

What an object must have besides to be a message is for the codec of each: they differ in what an id may be.
"""

from __future__ import annotations

from typing import Any

from trunkline.base import jsontext
from trunkline.base.lines import LineSplitter, OverlongLine
from trunkline.base.values import Value

#: The most members and items of one message: far beyond any, and parsed in a few milliseconds.
MAX_VALUES = 100_000

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
#: Not JSON-RPC's, but of both protocols.
RESOURCE_NOT_FOUND = -32002


class NoObject(Value):
    """Something that cannot be a message, and how it is answered."""

    code: int
    message: str


class ObjectLines:
    """Bytes into objects. Whatever a line is, the next one is a new start; empty lines are nothing."""

    def __init__(self, max_line: int) -> None:
        self._lines = LineSplitter(max_line)
        self._max_line = max_line

    def feed(self, data: bytes) -> list[dict[str, Any] | NoObject]:
        """What some bytes complete."""
        return self._read(self._lines.feed(data))

    def finish(self) -> list[dict[str, Any] | NoObject]:
        """The stream has ended: a last line may lack its line feed."""
        return self._read(self._lines.finish())

    def _read(self, lines: list[bytes | OverlongLine]) -> list[dict[str, Any] | NoObject]:
        found: list[dict[str, Any] | NoObject] = []
        for line in lines:
            if isinstance(line, OverlongLine):
                found.append(too_long(line.size, self._max_line))
            elif line.strip():
                found.append(parse(line))
        return found


def parse(data: bytes) -> dict[str, Any] | NoObject:
    """The object that some bytes are."""
    try:
        value = jsontext.loads(data, max_values=MAX_VALUES)
    except ValueError as error:
        return NoObject(PARSE_ERROR, f"This is not JSON: {error}")
    if isinstance(value, list):
        return NoObject(INVALID_REQUEST, "Batches are not taken: send one message at a time")
    if not isinstance(value, dict):
        return NoObject(INVALID_REQUEST, "A message must be a JSON object")
    return value


def too_long(size: int, limit: int) -> NoObject:
    """A message over the limit."""
    return NoObject(INVALID_REQUEST, f"A message of {size} bytes exceeds the limit of {limit} bytes")
