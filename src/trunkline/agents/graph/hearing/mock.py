"""The recognizer of the Mock engine: it hears loudness, and counts it.

The sound is cut into pieces of 100 ms; a last one of 50 ms or more counts as well. The k-th loud piece of the utterance
is the word `wk`: w1 w2 w3. What it hears depends on the sound alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunkline.agents.graph.hearing.pcm import Mono
from trunkline.agents.graph.hearing.utterance import ListeningOptions, Utterance
from trunkline.core.graph.turns import TranscriptListener

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: The root of the mean square from which a piece is loud.
LOUD = 1000
_PIECE_MS = 100
#: Words after which a segment is first told of. Each later time it is half as long again, so that all of the partials
#: together are not much longer than the transcript.
_FIRST_PARTIAL = 3


class MockUtterance(Utterance):
    """Loud pieces are words."""

    def __init__(self, options: ListeningOptions, listener: TranscriptListener) -> None:
        super().__init__(options, listener)
        self._mono = Mono(options.format)
        self._held: NDArray[np.int16] | None = None
        self._pieces = self._taken = 0
        """How many there were, and the samples in them."""
        self._count = 0
        """The words of the utterance."""
        self._words: list[str] = []
        """Those of the segment."""
        self._due = _FIRST_PARTIAL
        self._quiet = 0

    async def _hear(self, pcm: bytes) -> None:
        import numpy as np

        samples = self._mono.feed(pcm)
        if self._held is not None:
            samples = np.concatenate((self._held, samples))
        begin = 0
        while not self.over and begin + (length := self._next_length()) <= len(samples):
            self._take(samples[begin : begin + length])
            begin += length
        self._held = samples[begin:]

    async def _hear_out(self) -> None:
        if self._held is not None and len(self._held) * 1000 >= self._options.format.rate * _PIECE_MS // 2:
            self._take(self._held)
        self._segment(" ".join(self._words), 0, last=True)

    def _next_length(self) -> int:
        """Not all rates have a whole number of samples in a piece."""
        return (self._pieces + 1) * self._options.format.rate // 10 - self._taken

    @property
    def _at_ms(self) -> int:
        """Where the last piece ends: by its samples, so that it does not matter whether more of them came with it."""
        return self._taken * 1000 // self._options.format.rate

    def _take(self, piece: NDArray[np.int16]) -> None:
        self._pieces += 1
        self._taken += len(piece)
        if _is_loud(piece):
            self._word()
        elif self._words:
            self._quiet += 1
            if self._quiet * _PIECE_MS >= self._options.min_silence_ms:
                self._pause()

    def _word(self) -> None:
        if not self._words:
            self._speech(self._at_ms)
        self._quiet = 0
        self._count += 1
        self._words.append(f"w{self._count}")
        if len(self._words) == self._due:
            self._due += self._due // 2
            self._partial(" ".join(self._words), self._at_ms)

    def _pause(self) -> None:
        self._segment(" ".join(self._words), self._at_ms, last=self._options.hands_free)
        self._words.clear()
        self._due, self._quiet = _FIRST_PARTIAL, 0
        if self._options.hands_free:
            self._close(self._at_ms)


def _is_loud(piece: NDArray[np.int16]) -> bool:
    import numpy as np

    # 16 bits squared and added up a few thousand times: whole numbers all the way.
    wide = piece.astype(np.int64)
    return int(np.dot(wide, wide)) >= LOUD * LOUD * len(piece)
