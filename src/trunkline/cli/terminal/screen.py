"""The bottom of a terminal: lines that stay, and below them a few that still change.

A line that was committed is written once and scrolls into the terminal's own history. The live lines are rewritten in
place, from the first one that differs, and every frame is a single write: nothing flickers, and nothing is printed
twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from rich.cells import cell_len

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

#: Terminals that know it show a frame when it is complete; the others ignore it.
_BEGIN_FRAME, _END_FRAME = "\x1b[?2026h", "\x1b[?2026l"
_HIDE_CURSOR, _SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
_BEGIN_PASTE, _END_PASTE = "\x1b[?2004h", "\x1b[?2004l"
_CLEAR_BELOW = "\x1b[J"

Size = Callable[[], tuple[int, int]]


class Screen:
    """Writes frames. `size` gives columns and rows; without `moves` the cursor only ever goes on, as on paper."""

    def __init__(self, write: Callable[[str], None], size: Size, *, moves: bool = True) -> None:
        self._write = write
        self._size = size
        self._moves = moves
        self._committed: list[str] = []
        self._live: list[str] = []

    @property
    def moves(self) -> bool:
        """Whether there are live lines at all."""
        return self._moves

    @property
    def columns(self) -> int:
        """How wide it is now."""
        return self._size()[0]

    @property
    def rows(self) -> int:
        """How high it is now."""
        return self._size()[1]

    def commit(self, lines: Sequence[str]) -> None:
        """Lines that stay, with the next frame."""
        self._committed += lines

    def frame(self, live: Sequence[str] = ()) -> None:
        """Write what was committed, and below it the live lines: as many of the last ones as there is room for."""
        if not self._moves:
            if self._committed:
                self._write("".join(f"{line}\n" for line in self._committed))
                self._committed.clear()
            return
        lines = list(live[-max(1, self.rows - 1) :])
        kept = 0 if self._committed else _common(self._live, lines)
        if not self._committed and kept == len(self._live) == len(lines):
            return
        if kept == len(lines) < len(self._live):
            # The cursor rests at the end of the last line: where the ones below it go, it is written again.
            kept = max(0, kept - 1)
        out = [self._back_to(kept)]
        out += [f"{line}\n" for line in self._committed]
        out.append("\n".join(lines[kept:]))
        self._committed.clear()
        self._live = lines
        self._write(_BEGIN_FRAME + "".join(out) + _END_FRAME)

    def begin(self) -> None:
        """From here on the live lines are ours: no cursor, and what is pasted comes as one piece."""
        if self._moves:
            self._write(_HIDE_CURSOR + _BEGIN_PASTE)

    def end(self) -> None:
        """Leave the terminal to others, on a line of its own."""
        self.frame()
        if self._moves:
            self._write(_END_PASTE + _SHOW_CURSOR)

    def _back_to(self, kept: int) -> str:
        """From the end of the live lines to the beginning of the first that is not kept, with nothing below."""
        old = self._live
        if kept == len(old):
            return "\n" if old else ""
        columns = self.columns
        up = sum(_rows(line, columns) for line in old[kept:]) - 1
        return "\r" + (f"\x1b[{up}A" if up else "") + _CLEAR_BELOW


def width(line: str) -> int:
    """How many cells a line takes, its colours aside."""
    return cell_len(_ESCAPES.sub("", line))


def is_blank(line: str) -> bool:
    """Whether there is nothing to see, its colours aside."""
    return not _ESCAPES.sub("", line).strip()


def _rows(line: str, columns: int) -> int:
    # A terminal that became narrower has broken the line by now.
    return max(1, -(-width(line) // max(1, columns)))


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    count = 0
    for before, after in zip(old, new, strict=False):
        if before != after:
            break
        count += 1
    return count
