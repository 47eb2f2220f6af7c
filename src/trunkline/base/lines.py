"""Bytes into lines, with a limit, and where lines go. Sans-IO: feed what was read, get what is complete.

Lines end at a line feed and nowhere else: not at a carriage return, not at U+2028, and never inside a character that
was split over two reads. A line over the limit is skipped and reported; the next one is read as usual, and no more
than the limit is ever held.
"""

from __future__ import annotations

from typing import Protocol

from trunkline.base.values import Value


class LineOutput(Protocol):
    """Where the agent's end of a wire writes its lines."""

    @property
    def congested(self) -> bool:
        """Whether the peer is so far behind that the agent should wait."""

    def write(self, data: bytes) -> None:
        """Hold a line until `flush`."""

    def flush(self) -> None:
        """Send what is held."""

    async def drain(self) -> None:
        """Wait until it is not congested."""


class OverlongLine(Value):
    """A line was over the limit and has been skipped. `size` counts what was seen of it so far."""

    size: int
    head: bytes = b""
    """How it begins, if that was wanted."""


class LineSplitter:
    """Cuts a stream of bytes at line feeds.

    A line of exactly `limit` bytes, its line feed not counted, is the longest that is let through. Of longer ones the
    first `head` bytes are kept.
    """

    def __init__(self, limit: int, head: int = 0) -> None:
        self._limit = limit
        self._head_bytes = head
        self._head = b""
        self._pending = bytearray()
        self._size = 0

    def feed(self, data: bytes) -> list[bytes | OverlongLine]:
        """Take some bytes and give the lines that they complete, without their line feeds."""
        *pieces, rest = data.split(b"\n")
        lines: list[bytes | OverlongLine] = [*pieces]
        if len(data) > self._limit:
            lines = [self._complete(piece) for piece in pieces]
        elif pieces and self._size:
            # No piece of it is too long, and only the first has something in front of it.
            lines[0] = self._complete(pieces[0])
        self._keep(rest)
        return lines

    def finish(self) -> list[bytes | OverlongLine]:
        """The stream has ended: what is left is a line if anything is."""
        return [self._take()] if self._size else []

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= self._limit:
            self._pending += piece
        elif self._size - len(piece) <= self._limit:
            self._head = bytes(self._pending[: self._head_bytes] + piece[: self._head_bytes])[: self._head_bytes]
            self._pending.clear()

    def _complete(self, piece: bytes) -> bytes | OverlongLine:
        """The line that ends with this piece."""
        self._keep(piece)
        return self._take()

    def _take(self) -> bytes | OverlongLine:
        line = OverlongLine(self._size, self._head) if self._size > self._limit else bytes(self._pending)
        self._pending.clear()
        self._size = 0
        self._head = b""
        return line
