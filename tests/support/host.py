"""A host that sees every line and checks, line by line, that the agent keeps the protocol's promises."""

from __future__ import annotations

import json
from typing import Any

from trunkline.wires.jsonstream.serve import JsonStreamServer


class Host:
    """The other end of a `JsonStreamServer`: an output for it, and a way to send it commands."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.open_messages: list[str] = []
        self.open_calls: dict[str, str] = {}
        self.ends: dict[str, int] = {}
        self.congested = False
        self.server: JsonStreamServer | None = None
        self._held: list[bytes] = []

    # The output of the server.

    def write(self, data: bytes) -> None:
        self._held.append(data)

    def flush(self) -> None:
        data = b"".join(self._held)
        self._held.clear()
        for line in data.splitlines():
            self._see(json.loads(line))

    async def drain(self) -> None:
        """The tests that use this host never fill it."""

    # What the tests do.

    def send(self, **command: Any) -> None:
        assert self.server is not None
        self.server.feed(json.dumps(command).encode() + b"\n")

    def message(self, msg_id: str, text: str = "hello") -> None:
        self.send(type="message", msg_id=msg_id, input=text)

    def take(self) -> list[dict[str, Any]]:
        """The lines since the last time."""
        taken, self.lines = self.lines, []
        return taken

    def types(self) -> list[str]:
        """The types of the lines since the last time, calls and messages named."""
        return [" ".join(filter(None, (line["type"], line.get("call_id")))) for line in self.take()]

    # What must always hold.

    def _see(self, line: dict[str, Any]) -> None:
        self.lines.append(line)
        kind, msg_id, call_id = line["type"], line.get("msg_id"), line.get("call_id")
        if kind == "info":
            assert isinstance(msg_id, str), f"{line} has no id"
        if kind == "stream_start":
            self.open_messages.append(str(msg_id))
            assert len(self.open_messages) <= 1, f"{line} while {self.open_messages} are open"
        elif kind == "stream_end":
            assert msg_id in self.open_messages, f"{line} while {self.open_messages} are open"
            assert not self.open_calls, f"{line} with open calls {self.open_calls}"
            self.open_messages.remove(str(msg_id))
            self.ends[str(msg_id)] = self.ends.get(str(msg_id), 0) + 1
        elif kind in ("text_delta", "thinking", "tool_request", "tool_running", "tool_result", "tool_cancelled"):
            assert msg_id in self.open_messages, f"{line} outside its message"
        if call_id is not None:
            self._see_call(kind, str(call_id), line)

    def _see_call(self, kind: str, call_id: str, line: dict[str, Any]) -> None:
        where = self.open_calls.get(call_id)
        if kind == "tool_request":
            assert where is None, f"{line} is a second request"
            self.open_calls[call_id] = "asked"
        elif kind == "tool_running":
            assert where != "running", f"{line} is a second start"
            self.open_calls[call_id] = "running"
        elif kind == "tool_result":
            assert where == "running", f"{line} without a start"
            del self.open_calls[call_id]
        elif kind == "tool_cancelled":
            self.open_calls.pop(call_id, None)
