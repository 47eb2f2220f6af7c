"""Unified diffs in colour, with the numbers of the lines."""

from __future__ import annotations

import re

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from trunkline.base.values import Value
from trunkline.cli.terminal.calls import clean

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
#: More than anybody compares by eye, and more than `difflib` can do in no time.
LARGEST = 400_000

_STYLES = {"+": "green", "-": "red", " ": "dim", "@": "dim cyan"}


class Row(Value):
    """A line of a diff: `+`, `-` or a space, or `@` for what is left out before the next hunk."""

    sign: str
    number: int | None
    text: str


def rows(diff: str) -> list[Row]:
    """The lines of a unified diff, its headers left out. What is none becomes lines without a sign."""
    found: list[Row] = []
    old = new = 0
    inside = False
    for line in clean(diff).rstrip("\n").split("\n"):
        hunk = _HUNK.match(line)
        if hunk:
            old, new = int(hunk[1]), int(hunk[2])
            if inside:
                found.append(Row("@", None, "⋮"))
            inside = True
        elif not inside:
            if not line.startswith(("--- ", "+++ ", "diff ", "index ")):
                found.append(Row(" ", None, line))
        elif line.startswith("+"):
            found.append(Row("+", new, line[1:]))
            new += 1
        elif line.startswith("-"):
            found.append(Row("-", old, line[1:]))
            old += 1
        elif not line.startswith("\\"):
            found.append(Row(" ", new, line[1:]))
            old, new = old + 1, new + 1
    return found


def counts(diff: str) -> tuple[int, int]:
    """How many lines were added and removed."""
    signs = [row.sign for row in rows(diff)]
    return signs.count("+"), signs.count("-")


class Painted:
    """A row in colour. What does not fit goes on below its beginning, where it cannot be taken for another row."""

    def __init__(self, row: Row, digits: int) -> None:
        number = "" if row.number is None else str(row.number)
        sign = " " if row.sign == "@" else row.sign
        self._style = _STYLES[row.sign]
        self._head = Text.assemble((f"{number:>{digits}} ", "dim"), (f"{sign} ", self._style))
        self._text = Text(row.text, self._style)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        indent = cell_len(self._head.plain)
        parts = self._text.wrap(console, max(1, options.max_width - indent), overflow="fold")
        for number, part in enumerate(parts or [self._text]):
            yield Text.assemble(Text(" " * indent) if number else self._head, part, overflow="fold")


def painted(diff: str) -> list[Painted]:
    """A diff, line by line."""
    found = rows(diff)
    digits = len(str(max((row.number or 0 for row in found), default=0)))
    return [Painted(row, digits) for row in found]


def between(old: str, new: str) -> str:
    """The unified diff of two texts; nothing if they are too long to compare."""
    if len(old) + len(new) > LARGEST:
        return ""
    from difflib import unified_diff

    lines = unified_diff(old.splitlines(), new.splitlines(), lineterm="")
    return "\n".join(lines)
