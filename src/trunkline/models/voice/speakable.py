"""Texts in the pieces that are said at once."""

from __future__ import annotations

import re
from collections.abc import Iterator

#: The longest piece: 20 seconds of speech. What is longer is split, since a voice says a piece for one client before it
#: turns to the next.
MAX_CHARS = 240
#: Where a sentence may end: behind its marks, if a blank follows (without one it may be a number, or go on), and at the
#: end of a line. Scripts that have no blanks have marks of their own.
SENTENCE_END = re.compile(
    r"(?<![.!?\u2026])(?P<marks>[.!?\u2026]+)[\"'\u2019\u201d\u00bb)\]*_]*\s+"
    r"|[\u3002\uff01\uff1f]+[\u300d\u300f\u201d\u2019)]*"
    r"|\n\s*"
)
#: Where a text is split, the best places first; if there is none, it is split anywhere.
_PLACES = (SENTENCE_END, re.compile(r"[,;:\u2013\u2014]\s+|[\u3001\uff0c\uff1b\uff1a]"), re.compile(r"\s+"))

_UNSPOKEN = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\s]+")


def pieces(text: str) -> Iterator[str]:
    """The pieces of a text, in order; none for a text without a letter or a figure in it."""
    rest = _UNSPOKEN.sub(" ", text).strip()
    while len(rest) > MAX_CHARS:
        cut = place(rest, 0, MAX_CHARS)
        yield from _spoken(rest[:cut])
        rest = rest[cut:].strip()
    yield from _spoken(rest)


def _spoken(piece: str) -> Iterator[str]:
    if has_words(piece):
        yield piece.strip()


def has_words(text: str) -> bool:
    """Whether there is anything in a text that can be said."""
    return any(character.isalnum() for character in text)


def place(text: str, begin: int, limit: int) -> int:
    """Where what begins there and is longer than `limit` is split. A worse place is taken before one too near."""
    for places in _PLACES:
        ends = [found.end() for found in places.finditer(text, begin, begin + limit)]
        if ends and ends[-1] - begin >= limit // 3:
            return ends[-1]
    return begin + limit
