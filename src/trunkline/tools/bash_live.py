"""The output of a running command that nobody has read yet: clean, as text, in bounded memory.

Both streams are one here, in the order in which they came. A secret that comes in two pieces is known for one.
"""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import Callable

from trunkline.base.redact import Redactor

#: Between two looks at the output of a running command: people see it within a second.
LIVE_SECONDS = 0.5
#: Lines that are told at once, and the bytes that are kept for them: a flood of output must not become one of
#: events.
LIVE_LINES = 10
LIVE_BYTES = 1 << 13
#: After so long without any output a sign of life is given. Hosts give up after 15 seconds of silence.
SILENT_SECONDS = 5.0


class UnreadOutput:
    """Keeps the last `limit` bytes of what was not taken yet."""

    def __init__(self, limit: int, redactor: Redactor | None = None) -> None:
        self._known = Redactor() if redactor is None else redactor
        self._limit = limit
        self._pieces: deque[tuple[int, bytes]] = deque()
        self._bytes = 0
        self._dropped = 0
        self._lines = 0
        self._finished = False
        self._begin()

    def feed(self, stream: int, data: bytes) -> None:
        """Take some bytes of standard output (0) or standard error (1). Cheap: they are looked at when taken."""
        self._lines += data.count(b"\n")
        self._pieces.append((stream, data[-self._limit :]))
        self._dropped += max(len(data) - self._limit, 0)
        self._bytes += min(len(data), self._limit)
        while self._bytes > self._limit:
            oldest, piece = self._pieces.popleft()
            surplus = min(self._bytes - self._limit, len(piece))
            self._dropped += surplus
            self._bytes -= surplus
            if surplus < len(piece):
                self._pieces.appendleft((oldest, piece[surplus:]))

    @property
    def lines(self) -> int:
        """How many lines have ended since the last time, those that were not kept among them."""
        return self._lines

    def finish(self) -> None:
        """Nothing more comes: what is held back can be told."""
        self._finished = True

    def take(self) -> tuple[str, int]:
        """What came since the last time, and how many bytes before that were not kept."""
        pieces, dropped = list(self._pieces), self._dropped
        self._pieces.clear()
        self._bytes = self._dropped = self._lines = 0
        if dropped:
            text = "".join(self._without_halves(pieces, stream) for stream in range(2))
            self._begin()
        else:
            text = "".join(self._cleaners[stream].feed(self._decoders[stream].decode(data)) for stream, data in pieces)
        if self._finished:
            for decoder, cleaner in zip(self._decoders, self._cleaners, strict=True):
                text += cleaner.feed(decoder.decode(b"", final=True)) + cleaner.finish()
            self._begin()
        return text, dropped

    def _begin(self) -> None:
        self._decoders = [codecs.getincrementaldecoder("utf-8")("replace") for _ in range(2)]
        self._cleaners = [self._known.stream() for _ in range(2)]

    def _without_halves(self, pieces: list[tuple[int, bytes]], wanted: int) -> str:
        """One stream of what was cut: what may be half of a secret, at either end, is left out."""
        data = b"".join(data for stream, data in pieces if stream == wanted)
        return self._known.ending(self._known.beginning(data.decode("utf-8", "replace")))


class LiveReport:
    """Tells people what a command prints while it runs: its newest lines, or, when it is silent, that it still runs."""

    def __init__(self, unread: UnreadOutput, report: Callable[[str], None]) -> None:
        self._unread = unread
        self._report = report
        self._told_at = 0.0

    def still(self, seconds: float) -> None:
        """To be called every `LIVE_SECONDS`, with the time since its start."""
        ended = self._unread.lines
        text, dropped = self._unread.take()
        lines = [line.rstrip() for line in text.splitlines() if line.strip()]
        if lines:
            shown = lines[-LIVE_LINES:]
            more = len(lines) - len(shown)
            if dropped:
                # Those that were not kept; the last of those that are shown may go on.
                more = max(more, ended - len(shown) + (not text.endswith("\n")))
            if more:
                self._report(f"[{more} more lines]")
            for line in shown:
                self._report(line)
        elif seconds - self._told_at >= SILENT_SECONDS:
            self._report(f"still running after {seconds:.0f} s")
        else:
            return
        self._told_at = seconds
