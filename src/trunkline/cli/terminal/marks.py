"""How a call looks in one line: a mark that says how it is going, the tool's name, what it is about."""

from __future__ import annotations

from rich.text import Text

from trunkline.cli.terminal.calls import Caption

Mark = tuple[str, str]
DONE: Mark = ("●", "green")
BAD: Mark = ("●", "red")
RUNNING: Mark = ("●", "yellow")
ASKED: Mark = ("?", "bold yellow")
CANCELLED: Mark = ("✗", "red")

#: Around the caption, besides what stands behind it: the mark, a blank, a column that stays free, and a dot.
_ENDS = 4


def captioned(about: Caption, mark: Mark, more: str, width: int) -> Text:
    """A call in a line. `more` stands behind it, and is seen also where the caption has to be cut."""
    line = named(about, Text().append(f"{mark[0]} ", mark[1]))
    room = width - len(more) - _ENDS
    if more and room > len(about.name) + _ENDS:
        line.truncate(room, overflow="ellipsis")
    return line.append(f" · {more}" if more else "", "dim")


def named(about: Caption, line: Text) -> Text:
    """The line with the tool's name and what the call is about at its end."""
    line.append(about.name, "bold")
    return line.append(f" {about.about}" if about.about else "")


def joined(*parts: str) -> str:
    """What is there of several things, as a line."""
    return " · ".join(filter(None, parts))
