"""What words may come to that only the shell knows: variables, substitutions, patterns, braces.

Nothing is left out: a word that could be what is looked for, under whatever circumstances, is said to be able to.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from trunkline.core.shell_words import UNKNOWN, ShellWord

#: Stands for a blank within a word, which is none between two.
_BLANK_INSIDE = "\2"
#: What one shell puts names of files or several words in the place of.
_WILD = re.compile(r"[\[{].*|[*?]", re.DOTALL)
#: What is quoted, or stands for itself.
_QUOTED = re.compile(r"\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
#: More of a text is not compared with a pattern: the answer is that it could fit.
MOST_COMPARED = 4_000


def is_several(word: ShellWord) -> bool:
    """Whether any number of words may come of it: none, one, or many."""
    if word.static or not (UNKNOWN in word.text or _WILD.search(word.text)):
        return False
    # "$@" in quotes is as many as there are.
    return "@" in word.source or any(char in _QUOTED.sub("", word.source) for char in "$`{*?[(")


def may_be(word: ShellWord, wanted: str) -> bool:
    """Whether a word, or the first that comes of it, could be this text."""
    if word.static:
        return False
    held = _with_holes(word)
    if is_several(word) and (UNKNOWN in word.text or "{" in word.text):
        return wanted.startswith(held.partition(UNKNOWN)[0])
    return _meet(_escaped(wanted), held)


def may_fit(pattern: str, words: Sequence[ShellWord]) -> bool:
    """Whether words, with blanks between them, could be as a pattern says, in which `*` stands for any text."""
    shown = " ".join(map(_with_holes, words))
    if pattern.endswith((" *", ":*")):
        return _meet(pattern[:-2], shown) or _meet(f"{pattern[:-2]} *", shown)
    return _meet(pattern, shown)


def _with_holes(word: ShellWord) -> str:
    """Its text with `UNKNOWN` for all that is not certain."""
    text = word.text if word.static else _WILD.sub(UNKNOWN, word.text)
    return re.sub(r"\s", _BLANK_INSIDE, text)


def _escaped(text: str) -> str:
    return text.replace("*", "\1")


def _meet(pattern: str, text: str) -> bool:
    """Whether there is a text that fits both: in one `*` stands for anything, in the other `UNKNOWN`.

    All places in the text that are reached are kept at once, as the bits of a number.
    """
    if len(text) > MOST_COMPARED:
        return True
    bits: dict[str, int] = {}
    for at, char in enumerate(text):
        bits[char] = bits.get(char, 0) | 1 << at
    holes, end = bits.pop(UNKNOWN, 0), 1 << len(text)
    reached = _behind_holes(1, holes)
    for char in pattern:
        if not reached:
            return False
        if char == "*":
            # From the first on, all of them.
            reached = 2 * end - (reached & -reached)
            continue
        fits = reached & bits.get("*" if char == "\1" else char, 0)
        reached = _behind_holes(reached & holes | fits << 1, holes)
    return bool(reached & end)


def _behind_holes(places: int, holes: int) -> int:
    """These places, and those behind what may be nothing: the sum carries each one to the end of its run of holes."""
    return places | (places & holes) + holes ^ holes
