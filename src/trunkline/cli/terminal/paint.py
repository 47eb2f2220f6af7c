"""Renderables as lines of text with colours, for a terminal that is somebody else's to write to."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from typing import Literal

from rich.console import Console, RenderableType
from rich.theme import Theme

Colors = Literal["standard", "256", "truecolor"]

#: Long lines are hard to read, however wide the terminal is.
WIDEST = 110
#: Wider than any line: what is painted so is not broken.
ANY_WIDTH = 100_000
#: Below this, nothing can be laid out; the terminal then breaks the lines itself.
NARROWEST = 20

_THEME = Theme(
    {
        "markdown.h1": "bold underline",
        "markdown.h2": "bold",
        "markdown.h3": "bold",
        "markdown.h4": "bold italic",
        "markdown.code": "cyan",
        "markdown.code_block": "none",
        "markdown.block_quote": "italic",
        "markdown.item.bullet": "cyan",
        "markdown.item.number": "cyan",
        "markdown.link": "underline",
        "markdown.link_url": "dim",
        "markdown.hr": "dim",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
    }
)

#: Where people speak.
PROMPT = "\u276f"

#: For terminals that cannot show more than ASCII.
_FALLBACKS = str.maketrans(
    {
        PROMPT: ">",
        "●": "*",
        "•": "*",
        "└": "`",
        "↪": ">",
        "✓": "+",
        "✗": "x",
        "▸": ">",
        "○": "o",
        "∴": ":",
        "…": "...",
        "·": "-",
        "─": "-",
        "━": "-",
        "│": "|",
        "▌": "|",
        "▏": "_",
        "⠋": "-",
        "⠙": "\\",
        "⠹": "|",
        "⠸": "/",
        "→": "->",
        "↑": "Up",
    }
)


class Painter:
    """Paints for a terminal of some width and with some colours."""

    def __init__(self, columns: Callable[[], int], *, color_system: Colors | None, encoding: str = "utf-8") -> None:
        self._columns = columns
        # Never written to: it only tells `rich` what the terminal can show.
        paper = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        self._console = Console(
            file=paper,
            # Each text is painted in a width of its own, which this one would limit.
            width=ANY_WIDTH,
            height=1,
            force_terminal=True,
            color_system=color_system,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
            theme=_THEME,
        )

    @property
    def width(self) -> int:
        """Of what is painted."""
        return max(NARROWEST, min(WIDEST, self._columns()))

    def lines(self, what: RenderableType, width: int | None = None) -> list[str]:
        """A renderable as lines, none of them wider than `width`, unless that is too narrow for it."""
        with self._console.capture() as capture:
            self._console.print(what, width=width or self.width)
        return [line.rstrip() for line in capture.get().removesuffix("\n").split("\n")]


def painter_for(columns: Callable[[], int]) -> Painter:
    """One for standard output."""
    found = Console(file=sys.stdout)
    known: dict[str | None, Colors] = {"standard": "standard", "256": "256", "truecolor": "truecolor"}
    return Painter(columns, color_system=known.get(found.color_system), encoding=encoding_of(sys.stdout))


def encoding_of(stream: io.TextIOBase | object) -> str:
    """What a stream encodes to."""
    return getattr(stream, "encoding", None) or "utf-8"


def encoded(text: str, encoding: str) -> bytes:
    """A text for a terminal; what it cannot show is replaced by something that resembles it, or by `?`."""
    try:
        return text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_FALLBACKS).encode(encoding, "replace")


def writer_to(fd: int, encoding: str) -> Callable[[str], None]:
    """A way to write whole texts to a descriptor. A terminal that is gone takes everything, and shows nothing."""

    def write(text: str) -> None:
        data = encoded(text, encoding)
        try:
            while data:
                data = data[os.write(fd, data) :]
        except OSError:
            # The signal that comes with it ends the program.
            return

    return write
