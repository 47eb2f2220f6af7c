"""Texts in the pieces that are said at once."""

from __future__ import annotations

import re
from collections.abc import Iterator

#: The longest piece: 20 seconds of speech. What is longer is split, since a voice says a piece for one client before it
#: turns to the next.
MAX_CHARS = 240
#: Where a text is split, the best places first; if there is none, it is split anywhere.
_PLACES = (re.compile(r"[.!?\u2026\u3002]+[\"')\]]*\s+"), re.compile(r"[,;:\u2013\u2014]\s+"), re.compile(r"\s+"))
#: A piece is filled at least so far before a worse place is taken.
_MIN_CHARS = MAX_CHARS // 3

_UNSPOKEN = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\s]+")


def pieces(text: str) -> Iterator[str]:
    """The pieces of a text, in order; none for a text without a letter or a figure in it."""
    rest = _UNSPOKEN.sub(" ", text).strip()
    while len(rest) > MAX_CHARS:
        cut = _place(rest)
        yield from _spoken(rest[:cut])
        rest = rest[cut:].strip()
    yield from _spoken(rest)


def _spoken(piece: str) -> Iterator[str]:
    if any(character.isalnum() for character in piece):
        yield piece.strip()


def _place(text: str) -> int:
    for places in _PLACES:
        ends = [found.end() for found in places.finditer(text, 0, MAX_CHARS)]
        if ends and ends[-1] >= _MIN_CHARS:
            return ends[-1]
    return MAX_CHARS
