"""Tables: one line for each row, as wide as the terminal.

The last column takes what room is left. What does not fit is cut, and `cut` marks it so. Where there is no terminal,
nothing is: a program may read it, or somebody later.
"""

from __future__ import annotations

import shutil
import sys
import unicodedata
from collections.abc import Sequence

import click

ELLIPSIS = "..."
#: Less room than this for the last column helps nobody: then lines are longer than the terminal is wide.
LEAST_LAST = 12

_GAP = "  "


def room() -> int | None:
    """The width that there is: that of the terminal; None, so that nothing is cut, if nobody looks at one."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def show(head: Sequence[str], rows: Sequence[Sequence[str]], *, wide: bool = False) -> None:
    """Print a table. With `wide` nothing is cut, on a terminal neither."""
    for line in lines(head, rows, None if wide else room()):
        click.echo(line)


def lines(head: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> list[str]:
    """The lines of a table. Without a width nothing is cut."""
    table = [head, *rows]
    widths = [max(cells(row[column]) for row in table) for column in range(len(head) - 1)]
    used = sum(widths) + len(_GAP) * len(widths)
    made = []
    for row in table:
        padded = [cell + " " * (room - cells(cell)) for cell, room in zip(row, widths, strict=False)]
        last = row[-1] if width is None else cut(row[-1], max(width - used, LEAST_LAST))
        made.append(_GAP.join([*padded, last]).rstrip())
    return made


def cells(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(_cells(char) for char in text)


def _cells(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cut(text: str, width: int) -> str:
    """As much of a text as fits."""
    if cells(text) <= width:
        return text
    kept = ""
    room = width - len(ELLIPSIS)
    for char in text:
        room -= _cells(char)
        if room < 0:
            break
        kept += char
    return kept.rstrip() + ELLIPSIS
