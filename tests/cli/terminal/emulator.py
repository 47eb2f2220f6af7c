"""A terminal that remembers: what is on its screen, and what has scrolled out of it."""

from __future__ import annotations

import re
from collections.abc import Callable

_PIECE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|\x1b\][^\x07]*\x07|\x1b[=>78]|[\r\n\b\x07]|[^\x1b\r\n\b\x07]+|\x1b")


class Emulator:
    """Knows as much of a terminal's language as is spoken to it. `answer` is called with what it would type itself."""

    def __init__(self, columns: int = 80, rows: int = 24, answer: Callable[[str], None] | None = None) -> None:
        self.columns = columns
        self.rows = rows
        self._answer = answer
        self._cells: list[list[str]] = [[]]
        self._top = 0
        self._row = 0
        self._column = 0
        self._rest = ""

    @property
    def history(self) -> list[str]:
        """Every line there is, also those that are out of sight."""
        lines = ["".join(cells).rstrip() for cells in self._cells]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    @property
    def screen(self) -> str:
        """What can be seen."""
        return "\n".join("".join(cells).rstrip() for cells in self._cells[self._top :]).rstrip()

    def feed(self, text: str) -> None:
        """What a program writes. Escapes that are cut in two are put together."""
        text, self._rest = self._rest + text, ""
        end = text.rfind("\x1b")
        if end >= 0 and re.fullmatch(r"\x1b(\[[0-9;?]*|\][^\x07]*)?", text[end:]):
            text, self._rest = text[:end], text[end:]
        for piece in _PIECE.finditer(text):
            if piece[2]:
                self._control(piece[1], piece[2])
            elif piece[0] == "\r":
                self._column = 0
            elif piece[0] == "\n":
                self._down()
            elif piece[0] == "\b":
                self._column = max(0, self._column - 1)
            elif piece[0][0] not in "\x1b\x07":
                self._print(piece[0])

    def _print(self, text: str) -> None:
        for character in text:
            if self._column >= self.columns:
                self._column = 0
                self._down()
            cells = self._cells[self._row]
            cells += [" "] * (self._column + 1 - len(cells))
            cells[self._column] = character
            self._column += 1

    def _down(self) -> None:
        self._row += 1
        while len(self._cells) <= self._row:
            self._cells.append([])
        self._top = max(self._top, self._row - self.rows + 1)

    def _control(self, arguments: str, name: str) -> None:
        number = int(arguments) if arguments.isdecimal() else 0
        step = max(1, number)
        match name:
            case "A":
                self._row = max(self._top, self._row - step)
            case "B":
                for _ in range(min(step, self._top + self.rows - 1 - self._row)):
                    self._down()
            case "C":
                self._column = min(self.columns - 1, self._column + step)
            case "D":
                self._column = max(0, self._column - step)
            case "J":
                del self._cells[self._row][self._column :]
                del self._cells[self._row + 1 :]
            case "K":
                del self._cells[self._row][self._column :]
            case "n" if arguments == "6" and self._answer is not None:
                self._answer(f"\x1b[{self._row - self._top + 1};{self._column + 1}R")
            case "m" | "h" | "l" | "n":
                pass
            case _:
                raise AssertionError(f"the emulator does not know CSI {arguments} {name}")
