"""The messages of language servers: JSON-RPC, each behind a head that tells its length. Sans-IO."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeGuard

from trunkline.base import jsontext
from trunkline.base.values import Value
from trunkline.tools.arguments import ToolInputError
from trunkline.tools.truncation import one_line

#: Of one message. The largest real ones, lists of completions that we never ask for, have less.
LONGEST_MESSAGE = 8 * 1024 * 1024
#: Of what stands before one: two lines.
LONGEST_HEAD = 4096
#: Diagnostics of one file that are looked at; a file with more has one problem.
MOST_LOOKED_AT = 1000
#: Lines and columns are below it.
MOST_COUNTED = 2**31
#: Of what one says.
MESSAGE_CHARS = 300

Severity = Literal["error", "warning"]
_SEVERITIES: Mapping[Any, Severity] = {1: "error", 2: "warning", None: "error"}


class ServerNonsense(ToolInputError):
    """What a server sends is no message of the protocol."""


class Diagnostic(Value):
    """One thing that is wrong. Lines and columns count from 1."""

    severity: Severity
    line: int
    column: int
    message: str
    code: str = ""

    @property
    def told(self) -> str:
        """In one line."""
        return f"{self.line}:{self.column} {self.severity}: {self.message}{f' ({self.code})' if self.code else ''}"

    @property
    def gist(self) -> tuple[str, str, str]:
        """What stays the same when lines are put in before it."""
        return self.severity, self.message, self.code


def encoded(message: Mapping[str, Any]) -> bytes:
    """A message as it is sent."""
    body = jsontext.dumps({"jsonrpc": "2.0", **message})
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class MessageReader:
    """Bytes into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._length: int | None = None

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """What some bytes complete.

        Raises:
            ServerNonsense: they are no messages; there is no way to find the next one.
        """
        self._buffer += data
        found: list[dict[str, Any]] = []
        while True:
            if self._length is None and not self._read_head():
                return found
            length = self._length or 0
            if len(self._buffer) < length:
                return found
            body = bytes(self._buffer[:length])
            del self._buffer[:length]
            self._length = None
            try:
                message = jsontext.loads(body)
            except ValueError as error:
                raise ServerNonsense(f"it sends what is not JSON ({error})") from None
            if isinstance(message, dict):
                found.append(message)

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > LONGEST_HEAD:
                raise ServerNonsense("it sends something else than messages")
            return False
        head = bytes(self._buffer[:end])
        del self._buffer[: end + 4]
        for line in head.split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length" and value.strip().isdigit() and len(value) < 20:
                self._length = int(value)
        if self._length is None:
            raise ServerNonsense("it sends a message without its length")
        if self._length > LONGEST_MESSAGE:
            raise ServerNonsense(f"it sends a message of {self._length} bytes; {LONGEST_MESSAGE} is the limit")
        return True


def diagnostics(items: Any) -> tuple[Diagnostic, ...]:
    """The errors and warnings of a list, from the top of the file; what has another form is left out."""
    found = []
    for item in items[:MOST_LOOKED_AT] if isinstance(items, list) else ():
        if not isinstance(item, dict) or item.get("severity") not in (None, 1, 2):
            continue
        start = _member(_member(item, "range"), "start")
        line, column = start.get("line"), start.get("character")
        message = item.get("message")
        if not _counts(line) or not _counts(column) or not isinstance(message, str):
            continue
        code = item.get("code")
        shown = str(code) if isinstance(code, str | int) else ""
        text = one_line(" ".join(message.split()), MESSAGE_CHARS)
        found.append(Diagnostic(_SEVERITIES[item.get("severity")], line + 1, column + 1, text, one_line(shown, 40)))
    return tuple(sorted(found, key=lambda each: (each.line, each.column)))


def _counts(number: Any) -> TypeGuard[int]:
    """Whether it is a number as the protocol has them."""
    return isinstance(number, int) and 0 <= number < MOST_COUNTED


def _member(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = data.get(name)
    return found if isinstance(found, dict) else {}
