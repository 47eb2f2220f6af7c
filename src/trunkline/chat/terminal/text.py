"""Markdown as rows of a terminal: wrapped at its width, with a few styles. No terminal is touched here.

Only what agents and the bridge use all the time is understood: bold, emphasis, code, headings, fences, lists. What is
not understood stays as it is written, and nothing of a text is lost but its marks.
"""

from __future__ import annotations

import re
import unicodedata

from trunkline.base.escapes import without_escapes
from trunkline.base.printable import without_controls, without_directions

BOLD, ITALIC, DIM, CODE = "1", "3", "2", "36"
_RESET = "\x1b[0m"

#: What stands left of every answer, so that it is apart from what people type.
INDENT = "  "
#: Narrower than this nothing can be laid out; the terminal then breaks the rows itself.
NARROWEST = 20
#: In a longer line nobody looks for marks, and somebody might have put thousands of them to keep us busy.
LONGEST_MARKED = 2000

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r"#{1,6} +")
#: What begins an item of a list; the rows below it are indented as far.
_BULLET = re.compile(r" *(?:[-*+]|\d{1,9}[.)]) +")
_INLINE = re.compile(
    r"(?P<ticks>`+)(?P<code>(?:(?!(?P=ticks)).)+)(?P=ticks)"
    r"|\*\*(?P<bold>\S(?:.*?\S)?)\*\*"
    r"|(?<!\w)_(?P<italic>[^\s_](?:.*?[^\s_])?)_(?!\w)"
)

#: A character and its styles.
_Glyph = tuple[str, str]


class GrowingText:
    """One text that grows, as rows. `grow` gives the rows from the first that is new or has changed."""

    def __init__(self) -> None:
        self.text = ""
        self._done = 0
        """How much of the text stands in rows that nothing changes any more."""
        self._fence = ""
        """What ends the code block that was open there."""
        self._rows: list[str] = []
        """The rows of the rest."""
        self._skips = "\n"
        """What is left out where a row begins the page, or goes on with it below something else."""

    def goes_on(self, text: str) -> bool:
        """Whether a text is this one, or this one and more."""
        return text.startswith(self._kept())

    def part(self) -> None:
        """Something else stands below: what is there stays, and what comes is written below that."""
        kept = self._kept()
        for line in kept[self._done :].split("\n"):
            self._fence = _fence_after(line, self._fence)
        self._done, self._rows, self._skips = len(kept), [], "\n "

    def grow(self, text: str, width: int) -> tuple[int, list[str]]:
        """Take a text that goes on: how many of the last rows are gone, and the rows that are new."""
        old = self._rows
        if self._skips:
            self._done += _blanks(text[self._done :], self._skips)
            self._skips = self._skips if self._done >= len(text) else ""
        lines = text[self._done :].split("\n")
        # A code block that is still open is shown as closed: that line is not the last of the text.
        last = len(lines) - (2 if len(lines) > 1 and _FENCE.match(lines[-1]) else 1)
        rows: list[str] = []
        fence, done, kept, final = self._fence, self._done, 0, self._fence
        for number, line in enumerate(lines):
            if number == last:
                self._done, kept, final = done, len(rows), fence
            rows += _rows(line, fence, width)
            fence = _fence_after(line, fence)
            done += len(line) + 1
        self._fence, self._rows, self.text = final, rows[kept:], text
        same = 0
        while same < min(len(old), len(rows)) and old[same] == rows[same]:
            same += 1
        return len(old) - same, rows[same:]

    def _kept(self) -> str:
        """The text without the end of a code block at its end, which may not be there the next time."""
        before, feed, last = self.text.rpartition("\n")
        return before if feed and _FENCE.match(last) else self.text


def changes(old: str, new: str) -> str:
    """The lines of a text that another did not have; all of it if there is none."""
    known = set(old.split("\n"))
    return "\n".join(line for line in new.split("\n") if line not in known) or new


def clean(text: str) -> str:
    """A text that a terminal shows, and does not obey."""
    return without_directions(without_controls(without_escapes(text)))


def styled(text: str, *styles: str) -> str:
    """A text in a style."""
    return f"\x1b[{';'.join(styles)}m{text}{_RESET}"


def cells(char: str) -> int:
    """How many columns a character takes."""
    if char < "\x7f":
        return 1
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _blanks(text: str, chars: str) -> int:
    """How much at the beginning of a text is of no use; the spaces of an indented line are."""
    return len(text) - len(text.lstrip("\n" if text.startswith("\n") else chars))


def _fence_after(line: str, fence: str) -> str:
    """What ends the code block that is open behind a line; empty if none is."""
    found = _FENCE.match(line)
    if found is None:
        return fence
    if not fence:
        return found[1]
    ends = found[1].startswith(fence) and not line[found.end() :].strip()
    return "" if ends else fence


def _rows(line: str, fence: str, width: int) -> list[str]:
    """The rows of one line."""
    room = max(width, NARROWEST) - len(INDENT)
    line = clean(line).expandtabs(4)
    if _fence_after(line, fence) != fence:
        return []
    if fence:
        glyphs = [(char, CODE) for char in line]
        return [_row(INDENT, part) for part in _chopped(glyphs, room - len(INDENT))]
    heading = _HEADING.match(line)
    bullet = _BULLET.match(line)
    glyphs = _glyphs(line[heading.end() :] if heading else line, BOLD if heading else "")
    hanging = " " * min(len(bullet[0]), room // 2) if bullet else ""
    parts = _wrapped(glyphs, room, len(hanging))
    return [_row(hanging if number else "", part) for number, part in enumerate(parts)]


def _glyphs(text: str, style: str) -> list[_Glyph]:
    """The characters of a text, its marks taken for styles."""
    found: list[_Glyph] = []
    at = 0
    for mark in _INLINE.finditer(text) if len(text) <= LONGEST_MARKED else ():
        found += [(char, style) for char in text[at : mark.start()]]
        at = mark.end()
        if mark["code"] is not None:
            found += [(char, _and(style, CODE)) for char in mark["code"]]
        elif mark["bold"] is not None:
            found += _glyphs(mark["bold"], _and(style, BOLD))
        else:
            found += _glyphs(mark["italic"], _and(style, ITALIC))
    return found + [(char, style) for char in text[at:]]


def _and(style: str, more: str) -> str:
    return f"{style};{more}" if style else more


def _wrapped(glyphs: list[_Glyph], room: int, hanging: int) -> list[list[_Glyph]]:
    """Rows broken between words; a word that is wider than a row is broken anywhere."""
    rows: list[list[_Glyph]] = []
    row: list[_Glyph] = []
    width = space = 0
    """Of the row, and of it up to and with its last space, in characters."""
    for char, style in glyphs:
        if width + cells(char) > room - (hanging if rows else 0) and char != " ":
            cut = space or len(row)
            rows.append(row[:cut])
            row, space = row[cut:], 0
            width = sum(cells(each) for each, _ in row)
        row.append((char, style))
        width += cells(char)
        if char == " ":
            space = len(row)
    return [*rows, row]


def _chopped(glyphs: list[_Glyph], room: int) -> list[list[_Glyph]]:
    """Rows broken anywhere: every space of code counts."""
    rows: list[list[_Glyph]] = [[]]
    width = 0
    for char, style in glyphs:
        if width + cells(char) > room:
            rows.append([])
            width = 0
        rows[-1].append((char, style))
        width += cells(char)
    return rows


def _row(indent: str, glyphs: list[_Glyph]) -> str:
    while glyphs and glyphs[-1][0] == " ":
        glyphs = glyphs[:-1]
    if not glyphs:
        return ""
    parts = [INDENT, indent]
    current = ""
    for char, style in glyphs:
        if style != current:
            parts.append((_RESET if current else "") + (f"\x1b[{style}m" if style else ""))
            current = style
        parts.append(char)
    return "".join(parts) + (_RESET if current else "")
