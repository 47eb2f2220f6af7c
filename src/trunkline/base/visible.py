"""Text of somebody else's about which somebody decides: every character of it is seen, and none hides another.

What would not be seen, turns the direction of writing, or moves a cursor is shown by its number: `<U+202E>`. So is a
long stretch of nothing, behind which the rest could be out of sight: `<U+0020 x 300>`.
"""

from __future__ import annotations

import re
import unicodedata

#: Longer runs of one blank, inside a line or of empty lines, are counted instead of shown: the deepest indentation of
#: real code is less.
LONGEST_BLANK = 60

#: What needs no second look: the printable part of ASCII.
_CANDIDATE = re.compile(r"[^ -~]")
_BLANKS = re.compile(rf"([ \t\n])\1{{{LONGEST_BLANK},}}")
#: Control and format characters (those that turn the direction round, or have no width), separators that break lines,
#: blanks other than the common one, halves of characters, and those that nobody but their author knows.
_UNSEEN_CATEGORIES = frozenset(("Cc", "Cf", "Zs", "Zl", "Zp", "Cs", "Co", "Cn"))
#: Letters and marks that are drawn as nothing at all: fillers, joiners, selectors of variants, the empty Braille cell.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
#: The blank of Chinese and Japanese texts is as wide as a letter.
_SEEN_BLANK = "\u3000"
#: What makes an emoji of the sign before it, and nothing else of anything.
_EMOJI_SELECTOR = "\ufe0f"


def visible(text: str, keep: str = "\n\t") -> str:
    """The text with every character that would not be seen, or would hide others, shown as its number: `<U+202E>`."""
    return _BLANKS.sub(_counted, _CANDIDATE.sub(lambda found: _shown(found, keep), text))


def unseen(text: str, keep: str = "\n\t") -> int:
    """How many characters of a text `visible` shows by their numbers."""
    return sum(_is_unseen(found, keep) for found in _CANDIDATE.finditer(text))


def _shown(found: re.Match[str], keep: str) -> str:
    return f"<U+{ord(found[0]):04X}>" if _is_unseen(found, keep) else found[0]


def _is_unseen(found: re.Match[str], keep: str) -> bool:
    char = found[0]
    if char in keep or char == _SEEN_BLANK:
        return False
    if char == _EMOJI_SELECTOR:
        before = found.string[found.start() - 1 : found.start()]
        return not before or unicodedata.category(before) != "So"
    return unicodedata.category(char) in _UNSEEN_CATEGORIES or _UNSEEN.match(char) is not None


def _counted(found: re.Match[str]) -> str:
    return f"<U+{ord(found[1]):04X} x {len(found[0])}>"
