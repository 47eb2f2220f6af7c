"""Text of somebody else's that does nothing but appear: what a terminal would obey is shown, or left out.

So are the characters that turn the direction of writing, with which a text shows as another one. Letters of scripts
that run from right to left have their direction by themselves, and stay as they are.
"""

from __future__ import annotations

import re

#: All control characters but the tab and the line feed, and halves of characters.
_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff"
#: What turns the direction of all that follows: embeddings, overrides and isolates.
_TURNS = "\u202a-\u202e\u2066-\u2069"
#: Marks that are as invisible letters of one direction. Texts in Arabic and Hebrew have them at their punctuation.
_MARKS = "\u061c\u200e\u200f"

# Compiled when first needed: every start of a process would wait for it.
_UNPRINTABLE = f"[{_CONTROLS}]"
_SHOWN = f"[{_CONTROLS}{_TURNS}{_MARKS}]"
_DIRECTIONS = f"[{_TURNS}{_MARKS}]"


def printable(text: str) -> str:
    """The text with its control characters as visible escapes; tabs and line feeds stay.

    So is what turns the direction of writing. The marks that only nudge it are left out: a text that has them rightly
    is easier to read without them than with their escapes.
    """
    return re.sub(_SHOWN, _escaped, text)


def printable_line(text: str) -> str:
    """The same in one line: a tab and a line feed are shown as escapes, too.

    For names that anybody may have given, such as those of directories: a name that begins a new line could say there
    whatever it likes.
    """
    return printable(text).replace("\t", "\\t").replace("\n", "\\n")


def without_controls(text: str, mark: str = "") -> str:
    """The text with a mark, or nothing, in the place of each control character; tabs and line feeds stay.

    What turns the direction of writing stays, too: whoever shows the text to people may know what to do with it.
    """
    return re.sub(_UNPRINTABLE, mark, text)


def without_directions(text: str) -> str:
    """The text without anything that turns the direction of writing, for whoever shows it to people as it is."""
    return re.sub(_DIRECTIONS, "", text)


def _escaped(found: re.Match[str]) -> str:
    if found[0] in _MARKS:
        return ""
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
