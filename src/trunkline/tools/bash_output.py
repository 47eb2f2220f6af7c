"""The output of a running command: its beginning and its end, in bounded memory.

kept = HeadAndTail()
kept.feed(b"...")
kept.text(), kept.dropped
"""

from __future__ import annotations

from trunkline.base.redact import Redactor

#: Kept of the beginning and of the end of one stream. Far more than a model is shown; two streams take 1 MiB.
HEAD_BYTES = 1 << 18
TAIL_BYTES = 1 << 18

#: A character of UTF-8 has at most three bytes after its first.
_MOST_CONTINUATION_BYTES = 3


class HeadAndTail:
    """Keeps the first `head` and the last `tail` bytes of a stream, and counts the rest."""

    def __init__(self, head: int = HEAD_BYTES, tail: int = TAIL_BYTES) -> None:
        self.size = 0
        """All bytes that were fed."""
        self._head_limit = head
        self._tail_limit = tail
        self._head = bytearray()
        self._tail = bytearray()

    @property
    def dropped(self) -> int:
        """How many bytes from the middle are not kept."""
        return max(self.size - self._head_limit - self._tail_limit, 0)

    def feed(self, data: bytes) -> None:
        """Take some bytes."""
        self.size += len(data)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data[-self._tail_limit :]
        # Cut at twice the limit: each byte is moved once, however small the pieces are.
        if len(self._tail) >= 2 * self._tail_limit:
            self._cut_tail()

    def text(self, redactor: Redactor | None = None) -> str:
        """What is kept, as text. What is not UTF-8 becomes U+FFFD; a mark stands where the middle was.

        `redactor` knows what must not be seen in halves where the middle begins and ends.
        """
        if not self.dropped:
            return (self._head + self._tail).decode("utf-8", "replace")
        self._cut_tail()
        head, tail = _without_cut_end(self._head), _without_cut_start(self._tail)
        mark = f"\n\n... [{self.size - len(head) - len(tail)} bytes were not kept] ...\n\n"
        known = redactor or Redactor()
        return known.beginning(head.decode("utf-8", "replace")) + mark + known.ending(tail.decode("utf-8", "replace"))

    def _cut_tail(self) -> None:
        surplus = len(self._tail) - self._tail_limit
        if surplus > 0:
            del self._tail[:surplus]


def _without_cut_start(data: bytearray) -> bytearray:
    """Without the rest of a character whose beginning was dropped."""
    start = 0
    while start < min(_MOST_CONTINUATION_BYTES, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:]


def _without_cut_end(data: bytearray) -> bytearray:
    """Without the beginning of a character whose rest was dropped."""
    for back in range(1, min(_MOST_CONTINUATION_BYTES, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        length = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return data[:-back] if length > back else data
    return data
