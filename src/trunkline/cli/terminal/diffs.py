"""Unified diffs in colour, with the numbers of the lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from trunkline.cli.terminal.calls import clean
from trunkline.core.change import DiffRow

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
#: A character that nobody would see, shown by its number; or many blanks.
_NUMBERS = re.compile(r"<U\+[0-9A-F]{4,6}(?: x \d+)?>|<blanks x \d+>")
#: How much is missing.
_MISSING = re.compile(
    r"\[\.\.\. [0-9,]+ (?:characters|arguments|rows)(?: and [0-9,]+ (?:characters|arguments))* are not shown \.\.\.\]"
)

#: How the diff of a file begins, as git writes it.
HEAD = "diff --git "
#: What of a diff is no line of a file, by how it begins, and how it looks.
_HEADS = {HEAD: "bold", "--- ": "dim", "+++ ": "dim", "index ": "dim", "@@ ": "cyan"}

_STYLES = {"+": "green", "-": "red", " ": "dim", "@": "dim cyan"}


def rows(diff: str) -> list[DiffRow]:
    """The lines of a unified diff, its headers left out. What is none becomes lines without a sign."""
    found: list[DiffRow] = []
    old = new = 0
    inside = False
    for line in clean(diff).rstrip("\n").split("\n"):
        hunk = _HUNK.match(line)
        if hunk:
            old, new = int(hunk[1]), int(hunk[2])
            if inside:
                found.append(DiffRow("@", None, "⋮"))
            inside = True
        elif not inside:
            if not line.startswith(("--- ", "+++ ", "diff ", "index ")):
                found.append(DiffRow(" ", None, line))
        elif line.startswith("+"):
            found.append(DiffRow("+", new, line[1:]))
            new += 1
        elif line.startswith("-"):
            found.append(DiffRow("-", old, line[1:]))
            old += 1
        elif not line.startswith("\\"):
            found.append(DiffRow(" ", new, line[1:]))
            old, new = old + 1, new + 1
    return found


def whole(diff: str) -> Text:
    """The diffs of several files as git writes them, in colours."""
    text = Text()
    inside = False
    for line in clean(diff).rstrip("\n").split("\n"):
        inside = (inside or line.startswith("@@ ")) and not line.startswith(HEAD)
        head = "@@ " if inside and line.startswith("@@ ") else next(filter(line.startswith, _HEADS), "")
        style = _STYLES.get(line[:1], "") if inside and head != "@@ " else _HEADS.get(head, "")
        text.append(f"{line}\n", style)
    text.rstrip()
    return marked(text)


def counts(diff: str) -> tuple[int, int]:
    """How many lines were added and removed."""
    signs = [row.sign for row in rows(diff)]
    return signs.count("+"), signs.count("-")


class Folded:
    """Lines of somebody else's, two columns in. Where one does not fit, a mark tells its rows from lines."""

    def __init__(self, text: Text, head: Text | None = None) -> None:
        self._text = text
        self._head = head or Text("  ")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        head = self._head
        for line in self._text.split("\n", allow_blank=True):
            for part in line.wrap(console, max(1, options.max_width - 2), overflow="fold") or [line]:
                yield Text.assemble(head, part, overflow="fold")
                head = Text("↪ ", "dim")
            head = Text("  ")


class Painted:
    """A row in colour. What does not fit goes on below its beginning, where it cannot be taken for another row."""

    def __init__(self, row: DiffRow, digits: int) -> None:
        number = "" if row.number is None else str(row.number)
        sign = " " if row.sign == "@" else row.sign
        self._style = _STYLES[row.sign]
        self._head = Text.assemble((f"{number:>{digits}} ", "dim"), (f"{sign} ", self._style))
        self._text = marked(Text(row.text, self._style))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        indent = cell_len(self._head.plain)
        parts = self._text.wrap(console, max(1, options.max_width - indent), overflow="fold")
        for number, part in enumerate(parts or [self._text]):
            yield Text.assemble(Text(" " * indent) if number else self._head, part, overflow="fold")


def painted(found: Sequence[DiffRow]) -> list[Painted]:
    """A change, line by line."""
    digits = len(str(max((row.number or 0 for row in found), default=0)))
    return [Painted(row, digits) for row in found]


def marked(text: Text) -> Text:
    """The same, with the characters standing out that are shown by their numbers, and what is missing."""
    text.highlight_regex(_MISSING, "yellow")
    text.highlight_regex(_NUMBERS, "bold reverse red")
    return text
