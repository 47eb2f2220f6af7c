"""Text that was written for a terminal, without what only a terminal understands."""

from __future__ import annotations

import re

#: Sequences that set colours, move the cursor, change the title, or switch character sets; also one that is cut off.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])")


def without_escapes(text: str) -> str:
    """The text without escape sequences."""
    return _ESCAPES.sub("", text) if "\x1b" in text else text
