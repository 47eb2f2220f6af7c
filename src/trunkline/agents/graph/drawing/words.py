"""Text in pictures: how wide it is, what of it fits, and how it does no harm.

Nobody knows which font a viewer has. Widths are those of a wide one: with all others there is some room to spare.
"""

from __future__ import annotations

import re
import unicodedata
from html import escape
from math import fsum

#: Characters of a text that are looked at: a line of a picture has room for far fewer.
MAX_CHARS = 4000
#: Marks on top of one letter. More of them grow out of the line.
_MAX_MARKS = 2

_NARROW = frozenset("ijltfrI.,:;|!'`()[]/\\- ")
_WIDE = frozenset("mwMWQO@%&#+=<>~")
#: Em of a character.
_EM, _NARROW_EM, _WIDE_EM, _UPPER_EM, _FULL_EM = 0.6, 0.37, 0.92, 0.71, 1.05
_BOLD = 1.14

#: What XML cannot hold, what a viewer would obey, and what turns the writing of all that follows around.
_HARMFUL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff]+"
)


def plain(text: str) -> str:
    """One line of text that shows what it is: no control characters, no towers of marks, single blanks."""
    text = " ".join(_HARMFUL.sub(" ", text[:MAX_CHARS]).split())
    if text.isascii():
        return text
    kept: list[str] = []
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks <= _MAX_MARKS:
            kept.append(character)
    return "".join(kept)


def escaped(text: str) -> str:
    """The text for the inside of an element or an attribute."""
    return escape(text, quote=True)


def width(text: str, size: float, *, bold: bool = False) -> float:
    """How wide a text is, at most."""
    # Not `sum`, which rounds differently since Python 3.12: a picture is the same everywhere.
    em = fsum(map(_em, text))
    return em * size * (_BOLD if bold else 1.0)


def _em(character: str) -> float:
    if character in _NARROW:
        return _NARROW_EM
    if character in _WIDE:
        return _WIDE_EM
    if character.isascii():
        return _UPPER_EM if character.isupper() else _EM
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Mn"):
        return 0.0
    return _FULL_EM if unicodedata.east_asian_width(character) in "WF" else _UPPER_EM


def shortened(text: str, size: float, most: float, *, bold: bool = False) -> str:
    """As much of a text as fits, with three dots for the rest."""
    if width(text, size, bold=bold) <= most:
        return text
    room = most / (size * (_BOLD if bold else 1.0)) - _FULL_EM
    kept = 0
    for character in text:
        room -= _em(character)
        if room < 0:
            break
        kept += 1
    return text[:kept].rstrip() + "\u2026"


def wrapped(text: str, size: float, most: float, lines: int) -> list[str]:
    """A text in at most so many lines, broken between words; the last one is shortened."""
    found: list[str] = []
    rest = text
    while rest and len(found) < lines - 1 and width(rest, size) > most:
        head = ""
        for word in rest.split(" "):
            if width(f"{head} {word}", size) > most:
                break
            head = f"{head} {word}".strip()
        if not head:
            break
        found.append(head)
        rest = rest[len(head) :].lstrip()
    return [*found, shortened(rest, size, most)] if rest else found
