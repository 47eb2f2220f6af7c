"""What stays on the screen: lines of several kinds, with a blank line where one kind ends."""

from __future__ import annotations

from typing import Literal

from rich.console import RenderableType
from rich.text import Text

from trunkline.cli.terminal.paint import Painter
from trunkline.cli.terminal.screen import Screen

Kind = Literal["text", "thinking", "tool", "plan", "note", "end", "user"]

INDENT = "    "


class Page:
    """Paints, and commits to the screen."""

    def __init__(self, screen: Screen, painter: Painter) -> None:
        self.screen = screen
        self.painter = painter
        self.last: Kind | None = None
        """What was put there last; None after a blank line."""
        self.about: str | None = None
        """The call that the last lines are about."""

    @property
    def width(self) -> int:
        """Of what is painted."""
        return self.painter.width

    def lines(self, what: RenderableType) -> list[str]:
        """Broken where the terminal ends."""
        return self.painter.lines(what)

    def line(self, text: Text | str, style: str = "") -> str:
        """One line, cut to the width."""
        line = Text(text, style) if isinstance(text, str) else text
        line.truncate(max(1, min(self.width, self.screen.columns) - 1), overflow="ellipsis")
        return self.painter.lines(line)[0]

    def indented(self, what: RenderableType) -> list[str]:
        """Below something else that it belongs to."""
        return [INDENT + line for line in self.painter.lines(what, max(1, self.width - len(INDENT)))]

    def put(self, kind: Kind, lines: list[str], *, apart: bool = False) -> None:
        """Commit lines of a kind, with a blank line between two kinds, and between two of a kind that stand `apart`."""
        if self.last is not None and (apart or kind != self.last):
            self.screen.commit([""])
        self.screen.commit(lines)
        self.last = kind
        self.about = None

    def add(self, lines: list[str]) -> None:
        """Commit lines that belong to the last ones."""
        self.screen.commit(lines)

    def space(self) -> None:
        """Leave one blank line."""
        if self.last is not None:
            self.screen.commit([""])
            self.last = None

    def apart(self, kind: Kind, lines: list[str], *, always: bool = False) -> None:
        """Put a blank line before live lines, as there will be one when they stay."""
        if lines and (always or (self.last is not None and (kind != self.last or kind == "text"))):
            lines.insert(0, "")
