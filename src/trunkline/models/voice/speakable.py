"""Texts in the pieces that are said at once."""

from __future__ import annotations

import re
from collections.abc import Iterator

#: The longest piece: twelve seconds of speech, or fewer letters of slow speech. What is longer is split, since a voice
#: says a piece for one client before it turns to the next.
MAX_CHARS = 240
#: What other characters than small letters take of that. Voices say figures and signs by their names, and letters of
#: other scripts too, which takes up to half a second for each; capitals they may spell.
CAPITAL_COST, SIGN_COST = 4, 8
#: What one word may take, however slowly it is said: a number of five figures is not taken apart.
WORD_COST = 50
#: Longer words are taken apart: nobody says them, and endless ones end the engines.
MAX_WORD = 80
#: The time that a letter takes, at the usual speed.
LETTER_SECONDS = 0.06

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
_ENDLESS = re.compile(rf"\S{{{MAX_WORD}}}(?=\S)")
#: What takes no longer than a letter, beside the small ones.
_QUICK = frozenset(" ,.;:!?'\"()-\u2013\u2014\u2018\u2019\u201c\u201d\u2026")
#: Behind these are other scripts than ours.
_LAST_LATIN = "\u024f"


def pieces(text: str, speed: float = 1.0) -> Iterator[str]:
    """The pieces of a text, in order; none for a text without a letter or a figure in it.

    The slower it is said, the shorter they are, so that none takes longer than those at the usual speed.
    """
    rest = _ENDLESS.sub(r"\g<0> ", _UNSPOKEN.sub(" ", text)).strip()
    most = MAX_CHARS * min(speed, 1.0)
    while (limit := _fitting(rest, most)) < len(rest):
        cut = _cut(rest, limit)
        yield from _spoken(rest[:cut])
        rest = rest[cut:].strip()
    yield from _spoken(rest)


def seconds(piece: str, speed: float) -> float:
    """How long the sound of a piece is, or less."""
    return sum(map(_cost, piece)) * LETTER_SECONDS / speed


def _cost(character: str) -> int:
    if character in _QUICK or (character.islower() and character <= _LAST_LATIN):
        return 1
    return CAPITAL_COST if character.isupper() and character <= _LAST_LATIN else SIGN_COST


def _fitting(text: str, most: float) -> int:
    """How many characters of a text take no more than that. One always does."""
    for count, character in enumerate(text):
        most -= _cost(character)
        if most < 0:
            return max(count, 1)
    return len(text)


def _cut(text: str, limit: int) -> int:
    """Where a text is split that is longer than `limit`. A word stays whole, if it is one that can be said."""
    found = place(text, 0, limit)
    if found < limit:
        return found
    before = text.rfind(" ", 0, limit + 1)
    if before > 0:
        return before
    behind = text.find(" ", limit, _fitting(text, WORD_COST) + 1)
    return behind if behind > 0 else limit


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
