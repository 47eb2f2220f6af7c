"""Long texts cut to a limit: the beginning, a mark that says how much is missing, the end.

    truncate(Masked("x" * 30), 10)        # "xxxxx\n\n... [truncated 20 chars] ...\n\nxxxxx"

The number in the mark is the text's size in UTF-8 less the limit, which for ASCII is the number of characters that are
missing. The result is longer than the limit by its mark; truncating it again with the same limit changes nothing.

Only a text without secrets is cut: half of a secret would not be known for one.
"""

from __future__ import annotations

import re

from trunkline.base.redact import Masked

#: Exactly what stands where something is missing.
_MARK = re.compile(r"\n\n\.\.\. \[truncated \d+ chars\] \.\.\.\n\n")

#: What replaces the end of a line for people that is too long.
ELLIPSIS = "..."


def mark(missing: int) -> str:
    """What stands between the beginning and the end of a text that was cut."""
    return f"\n\n... [truncated {missing} chars] ...\n\n"


def truncate(text: Masked, limit: int) -> Masked:
    """The text, without its middle if it has more than `limit` characters."""
    if len(text) <= limit or _is_truncated(text, limit // 2):
        return text
    clip = Clip(limit)
    clip.feed(text)
    return clip.text()


def one_line(text: str, limit: int = 500) -> str:
    """A text for one line that people read: line breaks are shown as what they are, a long end is left out."""
    line = text[: limit + 1].replace("\r", "\\r").replace("\n", "\\n")
    return line if len(line) <= limit else line[:limit] + ELLIPSIS


class Clip:
    """Truncates a text that comes in pieces: `text` gives what `truncate` makes of all of it. Memory is bounded."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        # The first `limit` characters, and at least as many of the last ones of what follows.
        self._head = ""
        self._tail = ""
        self._bytes = 0

    def feed(self, text: Masked) -> None:
        """Add the next piece."""
        self._bytes += len(text.encode("utf-8", "surrogatepass"))
        room = self._limit - len(self._head)
        self._head += text[:room]
        self._tail += text[room:]
        # Not each time: cutting is copying.
        if len(self._tail) > 4 * self._limit:
            self._tail = self._tail[-self._limit - 1 :]

    def skip(self, size: int) -> None:
        """Count a piece of that many bytes that will be missing: the limit was reached before, and is again behind."""
        self._bytes += size

    def text(self) -> Masked:
        """What was fed, without its middle if that is too much."""
        if not self._tail:
            return Masked(self._head)
        ends = self._head + self._tail
        half = self._limit // 2
        start, stop = half, len(ends) - half
        start -= _splits_a_pair(ends, start)
        stop += _splits_a_pair(ends, stop)
        return Masked(ends[:start] + mark(self._bytes - self._limit) + ends[stop:])


def _is_truncated(text: str, half: int) -> bool:
    # Either side is one shorter where it would have ended within a pair.
    found = _MARK.match(text, half) or _MARK.match(text, max(half - 1, 0))
    return found is not None and half - 1 <= len(text) - found.end() <= half


def _splits_a_pair(text: str, position: int) -> bool:
    """Whether a cut here would part two surrogates that are one character together."""
    before, after = text[position - 1 : position], text[position : position + 1]
    return "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff"
