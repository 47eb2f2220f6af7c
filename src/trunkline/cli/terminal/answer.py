"""An answer on its way to the screen: blocks are painted once when they are finished, and only the last one is live."""

from __future__ import annotations

from trunkline.base.values import Value
from trunkline.cli.terminal.calls import clean_delta
from trunkline.cli.terminal.markdown import MarkdownStream, formatted, is_table
from trunkline.cli.terminal.paint import Painter
from trunkline.cli.terminal.screen import is_blank


class CommitLines(Value):
    """Lines to commit. `first`: a block begins with them."""

    lines: tuple[str, ...]
    first: bool


class AnswerView:
    """The Markdown of one stretch of text.

    A block that outgrows the screen is committed line by line from its top: text that follows does not change how these
    lines look. A table is not, since each row can widen a column: of a long one the end is live until it is complete.
    """

    def __init__(self, painter: Painter) -> None:
        self._painter = painter
        self._stream = MarkdownStream()
        self._frozen = 0
        """Lines of the live block that are committed already."""
        self._width: int | None = None
        """That of the live block, once some of it is."""
        self._painted: tuple[str, int, list[str]] = ("", 0, [])

    def feed(self, text: str) -> None:
        """Some more of it."""
        self._stream.feed(clean_delta(text))

    def settle(self, room: int) -> list[CommitLines]:
        """What can be committed, so that the live lines fit into `room`."""
        pieces = [self._finish(block) for block in self._stream.finished()]
        lines = self._lines(self._stream.rest)
        overflow = len(lines) - room
        if overflow > self._frozen and not is_table(self._stream.rest):
            pieces.append(CommitLines(tuple(lines[self._frozen : overflow]), not self._frozen))
            self._frozen = overflow
            self._width = self._width or self._painter.width
        return [piece for piece in pieces if piece.lines]

    @property
    def goes_on(self) -> bool:
        """Whether the live lines continue the last committed ones."""
        return self._frozen > 0

    def live(self) -> list[str]:
        """The lines of the block that is not finished."""
        return self._lines(self._stream.rest)[self._frozen :]

    def close(self) -> list[CommitLines]:
        """Commit everything that is left."""
        return [piece for piece in map(self._finish, self._stream.close()) if piece.lines]

    def _finish(self, block: str) -> CommitLines:
        piece = CommitLines(tuple(self._lines(block)[self._frozen :]), not self._frozen)
        self._frozen = 0
        self._width = None
        return piece

    def _lines(self, block: str) -> list[str]:
        if not block.strip():
            return []
        width = self._width or self._painter.width
        # Asked for several times a frame, while nothing new may have come.
        if self._painted[:2] != (block, width):
            lines = self._painter.lines(formatted(block), width)
            self._painted = (block, width, _trimmed(lines))
        return self._painted[2]


def _trimmed(lines: list[str]) -> list[str]:
    start, end = 0, len(lines)
    while start < end and is_blank(lines[start]):
        start += 1
    while end > start and is_blank(lines[end - 1]):
        end -= 1
    return lines[start:end]
