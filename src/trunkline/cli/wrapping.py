"""Sentences on a terminal: lines end between words, and what somebody will copy stays in one piece."""

from __future__ import annotations

import re
import shutil
from typing import TextIO

#: A command behind `with: `, what stands between backticks, and words: addresses and keys are words.
_UNIT = re.compile(r"(?<=with: )\S.*|`[^`\n]*`[^\s`]*|\S+")


def fitted(text: str, stream: TextIO, taken: int = 0) -> str:
    """A text for a stream, as it is where that is no terminal. `taken` columns of its first line are used already."""
    return wrapped(text, shutil.get_terminal_size().columns, taken) if stream.isatty() else text


def wrapped(text: str, width: int, taken: int = 0) -> str:
    """The same in lines of that width. What is longer than a line gets one of its own, and is not broken."""
    lines = []
    for line in text.split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        made, reached = indent, taken + len(indent)
        for match in _UNIT.finditer(line):
            unit = match[0]
            apart = 1 if made.strip() else 0
            if made.strip() and reached + apart + len(unit) > width:
                lines.append(made)
                made, reached, apart = indent, len(indent), 0
            made += " " * apart + unit
            reached += apart + len(unit)
        lines.append(made)
        taken = 0
    return "\n".join(lines)
