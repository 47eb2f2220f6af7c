"""Text of somebody else's about which somebody decides: every character of it is seen, and none hides another.

What would not be seen, turns the direction of writing, or moves a cursor is shown by its number: `<U+202E>`. So is a
long stretch of nothing, behind which the rest could be out of sight: `<U+0020 x 300>`, or `<blanks x 300>` of several
kinds.
"""

from __future__ import annotations

import re
import unicodedata

#: Longer runs of blanks, inside a line or of empty lines, are counted instead of shown: the deepest indentation of
#: real code is less.
LONGEST_BLANK = 60

#: What needs no second look: the printable part of ASCII.
_CANDIDATE = re.compile(r"[^ -~]")
_BLANKS = re.compile(rf"(?<![ \t\u3000])[ \t\u3000]{{{LONGEST_BLANK + 1},}}+")
#: Tried once for each stretch of blanks, and not again from each character of it.
_EMPTY_LINES = re.compile(rf"(?<![ \t\u3000\n])(?:[ \t\u3000]*+\n){{{LONGEST_BLANK + 1},}}+")
#: Control and format characters (those that turn the direction round, or have no width), separators that break lines,
#: blanks other than the common one, halves of characters, and those that nobody but their author knows.
#: Marks that enclose the letter before them hide it, too.
_UNSEEN_CATEGORIES = frozenset(("Cc", "Cf", "Zs", "Zl", "Zp", "Cs", "Co", "Cn", "Me"))
#: Letters and marks that are drawn as nothing at all: fillers, joiners, selectors of variants, the empty Braille cell,
#: a note without a head, what stands for an object.
_NOTHING = (
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\ufffc\U00016fe4\U0001d159"
    "\U000e0100-\U000e01ef"
)
#: Marks that are drawn across the letter before them: strokes, solidi, arrows and rings.
_OVERLAYS = "\u0334-\u0338\u20d2\u20d3\u20d8-\u20da\u20e5\u20e6\u20ea\u20eb\U0001d167-\U0001d169"
_UNSEEN = re.compile(f"[{_NOTHING}{_OVERLAYS}]")
#: Those of them that are as wide as others.
_BLANK_LETTERS = "\u115f\u1160\u2800\u3164\uffa0"
#: The blank of Chinese and Japanese texts is as wide as a letter.
_SEEN_BLANK = "\u3000"
#: What makes an emoji of the sign before it, and nothing else of anything.
_EMOJI_SELECTOR = "\ufe0f"


def visible(text: str, keep: str = "\n\t") -> str:
    """The text with every character that would not be seen, or would hide others, shown as its number: `<U+202E>`."""
    shown = _BLANKS.sub(_counted, _CANDIDATE.sub(lambda found: _shown(found, keep), text))
    return _EMPTY_LINES.sub(_counted, shown)


def inline(text: str, most: int) -> str:
    """The text for a place between backticks: one line, which cannot end them, with every character seen."""
    line = visible(" ".join(text.replace("`", "'").split()), keep="")
    return line if len(line) <= most else f"{line[:most]}... ({len(line) - most} more characters)"


def unseen(text: str, keep: str = "\n\t") -> int:
    """How many characters of a text `visible` shows by their numbers."""
    return sum(_is_unseen(found, keep) for found in _CANDIDATE.finditer(text))


def drawn(text: str) -> str:
    """What of a text is drawn: without what is not seen, and with one kind of blank, which letters may be, too."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(" " if _is_blank(char) else char for char in text if _is_blank(char) or not _is_hidden(char))


def _is_blank(char: str) -> bool:
    return char in _BLANK_LETTERS or char in "\t\n\v\f\r " or unicodedata.category(char) in ("Zs", "Zl", "Zp")


def _is_hidden(char: str) -> bool:
    return not " " <= char <= "~" and (
        unicodedata.category(char) in _UNSEEN_CATEGORIES or _UNSEEN.match(char) is not None
    )


def _shown(found: re.Match[str], keep: str) -> str:
    return f"<U+{ord(found[0]):04X}>" if _is_unseen(found, keep) else found[0]


def _is_unseen(found: re.Match[str], keep: str) -> bool:
    char = found[0]
    if char in keep or char == _SEEN_BLANK:
        return False
    if char == _EMOJI_SELECTOR:
        before = found.string[found.start() - 1 : found.start()]
        return not before or unicodedata.category(before) != "So"
    return _is_hidden(char)


def _counted(found: re.Match[str]) -> str:
    kinds = set(found[0])
    kind = f"U+{ord(found[0][0]):04X}" if len(kinds) == 1 else "blanks"
    return f"<{kind} x {len(found[0])}>"
