"""Stop sequences: the first of them ends an answer, and nothing of it is shown.

    async for piece in stopped(pieces, ("\\nUser:", "END")):
        ...

Most engines end by themselves; this makes all of them alike. What may be the beginning of a sequence is held back until
more has come, so that one that comes in two pieces is not shown in part.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from trunkline.models.engines import Piece


class StopFilter:
    """Takes a text in pieces, and gives as much of it as is sure to be shown."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._longest = max(map(len, stops), default=1)
        # Each piece is looked at, and most have none of these letters.
        self._firsts = re.compile(
            "|".join(re.escape(letter) for letter in sorted({stop[0] for stop in stops})) or "(?!)"
        )
        self._held = ""
        self.stopped = False
        """Whether one of the sequences has come."""

    def feed(self, piece: str) -> str:
        """What can be shown by now."""
        text = self._held + piece
        ends = [at for stop in self._stops if (at := text.find(stop)) >= 0]
        if ends:
            self.stopped, self._held = True, ""
            return text[: min(ends)]
        kept = self._beginning(text)
        shown, self._held = text[: len(text) - kept], text[len(text) - kept :]
        return shown

    def rest(self) -> str:
        """No more comes: what was held back is no sequence."""
        held, self._held = self._held, ""
        return held

    def _beginning(self, text: str) -> int:
        """How many characters at the end of a text may begin a sequence."""
        # The whole of one is not in the text.
        for first in self._firsts.finditer(text, max(0, len(text) - self._longest + 1)):
            end = text[first.start() :]
            if any(stop.startswith(end) for stop in self._stops):
                return len(end)
        return 0


async def stopped(pieces: AsyncGenerator[str, None], stops: Sequence[str]) -> AsyncGenerator[str, None]:
    """An answer up to the first of the sequences, with what it has cost. Then the engine is let go.

    What an engine tells of its costs behind the sequence is lost with the rest, unless it stops by itself.
    """
    found = StopFilter(stops)
    async with aclosing(pieces) as source:
        async for piece in source:
            shown = found.feed(piece)
            if isinstance(piece, Piece):
                yield Piece(shown, piece.tokens, piece.prompt_tokens, piece.cached_tokens)
            else:
                # A token was made, whether or not it can be shown yet.
                yield Piece(shown)
            if found.stopped:
                return
    if rest := found.rest():
        yield Piece(rest, 0)
