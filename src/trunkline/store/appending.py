"""What a log asks of the records that are added, and how many it holds for a disk that takes none."""

from __future__ import annotations

from trunkline.base import jsontext
from trunkline.core import records

#: What a log holds in memory while it cannot be written: hours of conversation, and no danger to the machine.
UNWRITTEN_BYTES = 64 * 1024 * 1024

#: What is left when that was too much. Less, so that making room is rare and its cost spread over many records.
KEPT_SHARE = 7 / 8

#: Shorter records cannot be nested too deep: a level needs a bracket at either end.
SHORTEST_TOO_DEEP = 2 * records.MAX_DEPTH


def excess(size: int) -> int:
    """How many of so many bytes that could not be written are to be forgotten, the oldest first."""
    return 0 if size <= UNWRITTEN_BYTES else size - int(UNWRITTEN_BYTES * KEPT_SHARE)


def refuse_unreadable(text: bytes) -> None:
    """Look at a record before it is added.

    Raises:
        TypeError: it is nested so deep that it could not be read back.
    """
    if len(text) < SHORTEST_TOO_DEEP:
        return
    # Only a text with that many brackets can be that deep: the common record is not parsed.
    if text.count(b"[") + text.count(b"{") > records.MAX_DEPTH:
        try:
            jsontext.loads(text, records.MAX_DEPTH)
        except ValueError as error:
            raise TypeError(f"a record that could not be read back: {error}") from None
