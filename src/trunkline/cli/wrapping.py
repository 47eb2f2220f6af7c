"""Sentences on a terminal: lines end between words, and what somebody will copy stays in one piece."""

from __future__ import annotations

import re
import shutil
from typing import TextIO

#: What stands between backticks, and words: addresses and keys are words.
_UNIT = re.compile(r"`[^`\n]*`[^\s`]*|\S+")
#: A sentence that is there for its command: what the reader does next.
_REMEDY = re.compile(r"\b((?:Add|Get|Install) (?:it|them) with) `([^`\n]+)`\.[ \n]?")
_COMMAND_INDENT = " " * 4


def fitted(text: str, stream: TextIO, taken: int = 0) -> str:
    """A text for a stream: commands apart and, on a terminal, lines that fit.

    `taken` columns of its first line are used already.
    """
    text = commands_apart(text)
    return wrapped(text, shutil.get_terminal_size().columns, taken) if stream.isatty() else text


def commands_apart(text: str) -> str:
    """The same with each command that mends something in a line of its own, which can be copied as it is."""
    return _REMEDY.sub(rf"\1:\n{_COMMAND_INDENT}\2\n", text).rstrip("\n")


def wrapped(text: str, width: int, taken: int = 0) -> str:
    """The same in lines of that width. What is longer than a line gets one of its own, and is not broken."""
    lines: list[str] = []
    for line in text.split("\n"):
        if line.startswith(_COMMAND_INDENT) and lines and lines[-1].endswith(" with:"):
            lines.append(line)
            continue
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
