"""What passed between a kit and one process under test: every line both ways, with its time.

The whole record is kept while a check runs, so that it can be judged; `export` gives the bounded form that goes into
a report.
"""

from __future__ import annotations

import time
from bisect import insort
from typing import Any, Literal

from trunkline.base.values import Value

#: Lines of a record that a report keeps from its beginning and from its end: a conversation with a flood of deltas in
#: the middle stays readable, and a report of a hundred conversations stays small enough to open.
REPORT_HEAD_LINES = 120
REPORT_TAIL_LINES = 60
#: Characters of one line that a report keeps: enough for any line that a person would read.
REPORT_LINE_CHARS = 2000

Who = Literal["host", "agent", "kit"]
#: What a report calls the first two of them.
Roles = tuple[str, str]

HOST_AND_AGENT: Roles = ("host", "agent")


class RecordEntry(Value):
    """One line. `who` wrote it: the host (the kit in that role), the target, or the kit as a remark of its own."""

    at: float
    who: Who
    line: bytes
    data: Any = None
    """The parsed line, when it is one."""


class Record:
    """The lines of one process, in the order in which they were written or read."""

    def __init__(self, name: str, argv: tuple[str, ...], roles: Roles = HOST_AND_AGENT) -> None:
        self.name = name
        self.roles = roles
        """What the kit is to the target, and what the target is."""
        self.argv = argv
        self.entries: list[RecordEntry] = []
        self.exit_code: int | None = None
        self.was_killed = False
        """The kit ended the process: what it was writing may be cut off."""
        self.unfinished: bytes = b""
        """What followed the last line feed when the output ended."""
        self.stderr = ""
        self._started = time.monotonic()
        self._sealed: dict[str, Any] | None = None

    def add(self, who: Who, line: bytes, data: Any = None, *, at: float | None = None) -> RecordEntry:
        """Keep one line, with the time since the start. What is told later says when it was, and stands there."""
        entry = RecordEntry((time.monotonic() if at is None else at) - self._started, who, line, data)
        if at is None:
            self.entries.append(entry)
        else:
            insort(self.entries, entry, key=lambda each: each.at)
        return entry

    def remark(self, text: str) -> None:
        """Keep a remark, such as that standard input was closed."""
        self.add("kit", text.encode())

    def seal(self) -> None:
        """Everybody has looked: keep the bounded form only."""
        self._sealed = self.export()
        self.entries.clear()

    def export(self) -> dict[str, Any]:
        """The bounded form for a report, as JSON values."""
        if self._sealed is not None:
            return self._sealed
        left_out = max(0, len(self.entries) - REPORT_HEAD_LINES - REPORT_TAIL_LINES)
        names = dict(zip(HOST_AND_AGENT, self.roles, strict=True))
        lines = [_exported(entry, names.get(entry.who, entry.who)) for entry in self.entries]
        if left_out:
            lines = lines[:REPORT_HEAD_LINES] + lines[-REPORT_TAIL_LINES:]
        return {
            "name": self.name,
            "argv": list(self.argv),
            "roles": list(self.roles),
            "exit_code": self.exit_code,
            "killed": self.was_killed,
            "stderr": self.stderr,
            "lines_left_out": left_out,
            "lines": lines,
        }


def _exported(entry: RecordEntry, who: str) -> dict[str, Any]:
    text = entry.line[: 4 * REPORT_LINE_CHARS].decode("utf-8", "backslashreplace")
    if len(text) > REPORT_LINE_CHARS or len(entry.line) > 4 * REPORT_LINE_CHARS:
        text = f"{text[:REPORT_LINE_CHARS]}... ({len(entry.line)} bytes)"
    return {"at": round(entry.at, 4), "from": who, "line": text}
