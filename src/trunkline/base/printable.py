"""Text of somebody else's that does nothing but appear: what a terminal would obey is shown, or left out."""

from __future__ import annotations

import re

#: All control characters but the tab and the line feed, and halves of characters.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def printable(text: str) -> str:
    """The text with its control characters as visible escapes; tabs and line feeds stay."""
    return _UNPRINTABLE.sub(_escaped, text)


def without_controls(text: str, mark: str = "") -> str:
    """The text with a mark, or nothing, in the place of each control character; tabs and line feeds stay."""
    return _UNPRINTABLE.sub(mark, text)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
