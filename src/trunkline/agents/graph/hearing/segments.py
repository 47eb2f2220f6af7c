"""Where speech begins and ends, told from how likely each moment is speech.

    segmenter = Segmenter(window=512, threshold=0.5, min_silence=8000, pad=4000, longest=240_000)
    for probability in detector.feed(pcm):
        edge = segmenter.step(probability)

All places are counted in samples from the beginning of the utterance. A segment begins and ends a little before and
after what was found to be speech (`pad`): the first and the last sounds of words are quiet.
"""

from __future__ import annotations

from enum import Enum

from trunkline.models.voice.engines import HEARING_RATE

#: Speech of this length is no accident: a click or a knock is shorter.
_ONSET = HEARING_RATE * 90 // 1000
#: Speech goes on while it is at least so likely, seen from the threshold: it would end in every vowel otherwise.
_HYSTERESIS = 0.15
#: From this part of its longest on a segment ends in the next short pause.
_LONG = 2 / 3
_SHORT_PAUSE = HEARING_RATE // 10


class SegmentEdge(Enum):
    """What a step has found."""

    OPENED = "somebody began to speak"
    SPLIT = "the segment is long enough, and the next one begins at once"
    CLOSED = "there was a pause, and the segment is over"


class Segmenter:
    """Follows one utterance. `begin` and `end` are those of the segment that is open, or was last."""

    def __init__(self, *, window: int, threshold: float, min_silence: int, pad: int, longest: int) -> None:
        self.window = window
        self.position = 0
        """As far as we have come."""
        self.speaking = False
        """Whether a segment is open."""
        self.begin = 0
        self._high = threshold
        self._low = max(threshold - _HYSTERESIS, threshold / 2)
        self._min_silence = max(min_silence, window)
        self._pad = pad
        self._long, self._longest = int(longest * _LONG), longest
        self._onset = -(-_ONSET // window)
        self._run = 0
        self._last = 0
        """Where speech was heard last."""
        self._taken = 0
        """What came before belongs to segments that are over."""

    @property
    def end(self) -> int:
        """The segment's end, if nobody says anything more. It may have no length, after a split."""
        return max(self.begin, min(self.position, self._last + self._pad))

    @property
    def hushed(self) -> bool:
        """Whether nobody spoke just now."""
        return self.position > self._last

    @property
    def settled(self) -> bool:
        """Whether the end is far enough behind us that more silence does not move it."""
        return self.speaking and self.position >= self._last + self._pad

    @property
    def needed(self) -> int:
        """Sound before this place is not asked for any more."""
        if self.speaking:
            return self.begin
        return max(self._taken, self.position - self._onset * self.window - self._pad)

    def step(self, probability: float) -> SegmentEdge | None:
        """Go on by one window."""
        self.position += self.window
        if not self.speaking:
            return self._wait(probability)
        if probability >= self._low:
            self._last = self.position
        elif self.position - self._last >= self._min_silence:
            self.speaking = False
            self._taken = self.end
            return SegmentEdge.CLOSED
        length = self.position - self.begin
        if length >= self._longest or (length >= self._long and self.position - self._last >= _SHORT_PAUSE):
            return SegmentEdge.SPLIT
        return None

    def go_on(self, at: int) -> None:
        """After a split: the next segment begins there."""
        self.begin = self._taken = at

    def _wait(self, probability: float) -> SegmentEdge | None:
        self._run = self._run + 1 if probability >= self._high else 0
        if self._run < self._onset:
            return None
        self.begin = max(self._taken, self.position - self._run * self.window - self._pad)
        self._last = self.position
        self._run = 0
        self.speaking = True
        return SegmentEdge.OPENED
