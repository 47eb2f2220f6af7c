"""Listening with real engines: a detector finds speech, and a recognizer writes it down.

While somebody speaks, the segment is written down again and again as it grows, which gives the partials; never twice at
a time, and never so often that nobody else gets a turn. As soon as it falls silent, what it would be if that were all
is written down, so that the text is often there when the pause is long enough.

Detecting is done in threads and in order. Words are waited for only where it depends on them how it goes on: at a pause
that may end the utterance, and at its end. That somebody speaks is told at once, before the words of earlier segments
if they take their time: whoever is interrupted by it is to fall silent.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from trunkline.agents.graph.hearing.pcm import Mono, Resampler
from trunkline.agents.graph.hearing.segments import SegmentEdge, Segmenter
from trunkline.agents.graph.hearing.threads import DetectionThreads
from trunkline.agents.graph.hearing.utterance import ListeningOptions, Utterance
from trunkline.core.faults import NoRecognizer
from trunkline.core.graph.turns import TranscriptListener
from trunkline.models.voice.engines import HEARING_RATE, Detector, Recognizer, SpeechError
from trunkline.models.voice.sound import SAMPLE_BYTES, last_pause, samples

logger = logging.getLogger(__name__)

#: The new sound that is worth another partial.
_GROWTH = HEARING_RATE * 6 // 10
#: There is a partial at least this often, with luck: after one, others get as much time as it took, up to this.
_PARTIAL_SECONDS = 2.5
#: Thresholds beyond these would hear speech in everything, or in nothing.
_MIN_THRESHOLD, _MAX_THRESHOLD = 0.05, 0.95
_DEFAULT_THRESHOLD = 0.5
#: More than this around speech is no padding.
_MAX_PAD_MS = 1000


class Ears:
    """What one voice input listens with. `detector` makes a new one for each utterance; the threshold is a sane one."""

    def __init__(
        self,
        recognizer: Recognizer,
        detector: Callable[[], Detector],
        detection: DetectionThreads,
        *,
        threshold: float = _DEFAULT_THRESHOLD,
        pad_ms: int = 250,
        hotwords: Sequence[str] = (),
    ) -> None:
        self.recognizer = recognizer
        self.detector = detector
        self.detection = detection
        self.threshold = threshold
        self.pad_ms = min(pad_ms, _MAX_PAD_MS)
        self.hotwords = tuple(hotwords)


def sane_threshold(wanted: float) -> float:
    """The nearest threshold that makes sense."""
    if not math.isfinite(wanted):
        return _DEFAULT_THRESHOLD
    return min(max(wanted, _MIN_THRESHOLD), _MAX_THRESHOLD)


class _Piece:
    """A segment, to be told when all before it are."""

    __slots__ = ("at_ms", "begin", "done", "end", "last", "pcm", "split")

    def __init__(self, at_ms: int, begin: int, end: int, pcm: bytes, *, last: bool, split: bool) -> None:
        self.at_ms = at_ms
        self.begin = begin
        self.end = end
        self.pcm = pcm
        self.last = last
        """The utterance is closed behind it, if there are words."""
        self.split = split
        """The speech goes on behind it."""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class RealUtterance(Utterance):
    """One utterance, as real engines understand it."""

    def __init__(self, ears: Ears, options: ListeningOptions, listener: TranscriptListener) -> None:
        super().__init__(options, listener)
        self._ears = ears
        self._mono = Mono(options.format)
        self._resampler = Resampler(options.format.rate)
        self._detector: Detector | None = None
        self._segments: Segmenter | None = None
        self._sound = bytearray()
        self._from = 0
        """The place of the first sample that is kept."""
        self._pieces: deque[_Piece] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._decoding: asyncio.Task[str] | None = None
        self._is_partial = False
        """Whether what is being written down is one."""
        self._place = (0, 0)
        """That of what is being written down."""
        self._known = (0, 0)
        """The place of what was written down last."""
        self._known_text = ""
        self._next_partial = 0.0
        self._hurried: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._complained = False

    def cancel(self) -> None:
        """See `HostedUtterance`."""
        super().cancel()
        self._sound.clear()
        self._pieces.clear()
        for task in (self._worker, self._decoding):
            if task is not None and task is not asyncio.current_task():
                task.cancel()

    def hurry(self) -> None:
        """See `HostedUtterance`."""
        if not self._hurried.done():
            self._hurried.set_result(None)

    # Sound.

    async def _hear(self, pcm: bytes) -> None:
        if self._hurried.done():
            return
        sound, found = await self._ears.detection.take(partial(self._detect, pcm))
        segments = self._segments
        if segments is None or self.over:
            return
        self._sound += sound
        for probability in found:
            edge = segments.step(probability)
            if edge is not None and not await self._goes_on(edge, segments):
                return
        self._forget(segments.needed)
        self._work_on()

    def _detect(self, pcm: bytes) -> tuple[bytes, list[float]]:
        """In a thread: the sound as the engines want it, and where in it somebody speaks."""
        if self._detector is None:
            self._detector = self._ears.detector()
        sound = self._resampler.feed(self._mono.feed(pcm))
        found = self._detector.feed(sound)
        if self._segments is None:
            self._segments = Segmenter(
                window=self._detector.window_ms * HEARING_RATE // 1000,
                threshold=self._ears.threshold,
                min_silence=self._options.min_silence_ms * HEARING_RATE // 1000,
                pad=self._ears.pad_ms * HEARING_RATE // 1000,
                longest=int(self._ears.recognizer.segment_seconds * HEARING_RATE),
            )
        return sound, found

    async def _goes_on(self, edge: SegmentEdge, segments: Segmenter) -> bool:
        """What is to be done at an edge, and whether the utterance goes on behind it."""
        if edge is SegmentEdge.OPENED:
            self._speech(_ms(segments.position))
            return not self.over
        if edge is SegmentEdge.SPLIT:
            # Where it is quietest: half a word is not understood.
            cut = segments.begin + last_pause(samples(self._between(segments.begin, segments.position)))
            self._put(self._cut(segments, last=False, split=True, end=cut))
            segments.go_on(cut)
            return True
        closing = self._options.hands_free
        piece = self._put(self._cut(segments, last=closing))
        if closing:
            await asyncio.wait({piece.done, self._hurried}, return_when=asyncio.FIRST_COMPLETED)
            if self._texts and piece.done.done():
                self._close(piece.at_ms)
        return not self.over and not self._hurried.done()

    async def _hear_out(self) -> None:
        segments = self._segments
        if segments is None:
            return
        self._sound += self._resampler.flush()
        if segments.speaking:
            # The last moments are too short to be judged, and belong to whatever was before them.
            rest = 0 if segments.hushed else self._from + len(self._sound) // SAMPLE_BYTES
            self._put(self._cut(segments, last=True, end=rest))
        while self._worker is not None and not self.over:
            await asyncio.wait({self._worker})

    def _cut(self, segments: Segmenter, *, last: bool, split: bool = False, end: int = 0) -> _Piece:
        begin, end = segments.begin, end or segments.end
        return _Piece(_ms(segments.position), begin, end, self._between(begin, end), last=last, split=split)

    def _between(self, begin: int, end: int) -> bytes:
        return bytes(self._sound[(begin - self._from) * SAMPLE_BYTES : (end - self._from) * SAMPLE_BYTES])

    def _forget(self, before: int) -> None:
        if before > self._from:
            del self._sound[: (before - self._from) * SAMPLE_BYTES]
            self._from = before

    # Words.

    def _put(self, piece: _Piece) -> _Piece:
        """Have a piece told. A partial that is not what the piece will be is in its way, unless the speech goes on:

        then nobody waits for the piece, and a partial comes sooner.
        """
        self._pieces.append(piece)
        wanted = piece.split or any(self._place == (each.begin, each.end) for each in self._pieces)
        if self._decoding is not None and self._is_partial and not wanted:
            self._decoding.cancel()
        self._work_on()
        return piece

    def _work_on(self) -> None:
        if self._worker is None and not self.over and (self._pieces or self._partial_due()):
            self._worker = asyncio.create_task(self._work())

    async def _work(self) -> None:
        """Write down whatever waits, one after the other."""
        try:
            while not self.over:
                if self._pieces:
                    piece = self._pieces[0]
                    text = await self._written(piece.begin, piece.end, piece.pcm) if piece.pcm else ""
                    if text is not None:
                        self._tell_piece(self._pieces.popleft(), text)
                elif self._partial_due():
                    await self._write_partial()
                else:
                    return
        except Exception:
            logger.exception("listening failed")
            self._failed()
            while self._pieces:
                self._tell_piece(self._pieces.popleft(), "")
        finally:
            self._worker = None

    def _tell_piece(self, piece: _Piece, text: str) -> None:
        try:
            if piece.pcm or piece.last:
                # After a split there may be nothing left to tell of.
                self._segment(text, piece.at_ms, last=piece.last and bool(text or self._texts))
        finally:
            if not piece.done.done():
                piece.done.set_result(None)

    def _partial_due(self) -> bool:
        segments = self._segments
        if segments is None or not segments.speaking or segments.end == segments.begin:
            return False
        begin, end = self._known
        if segments.hushed:
            # Soon it is clear whether that was all.
            return segments.settled and (begin, end) != (segments.begin, segments.end)
        grown = segments.end - (end if begin == segments.begin else segments.begin)
        return grown >= _GROWTH and asyncio.get_running_loop().time() >= self._next_partial

    async def _write_partial(self) -> None:
        segments = self._segments
        if segments is None:
            return
        clock = asyncio.get_running_loop().time
        begun, begin, end = clock(), segments.begin, segments.end
        self._is_partial = True
        try:
            text = await self._written(begin, end, self._between(begin, end))
        finally:
            self._is_partial = False
        took = clock() - begun
        self._next_partial = clock() + min(took, max(0.0, _PARTIAL_SECONDS - took))
        if self._pieces:
            ongoing = self._pieces[0].split and self._pieces[0].begin == begin
        else:
            ongoing = segments.speaking and segments.begin == begin
        if ongoing:
            self._partial(text or "", self._consumed_ms)

    async def _written(self, begin: int, end: int, pcm: bytes) -> str | None:
        """What is said there; None if it is not wanted any more. What was written down last is known."""
        if self._known == (begin, end):
            return self._known_text
        self._place = (begin, end)
        decoding = self._decoding = asyncio.create_task(self._heard(pcm))
        try:
            await asyncio.wait({decoding})
        finally:
            self._decoding = None
        if decoding.cancelling():
            return None
        self._known, self._known_text = (begin, end), ""
        # An engine may cancel its own work: then it has failed, too.
        error = SpeechError("it gave up") if decoding.cancelled() else decoding.exception()
        if error is None:
            self._known_text = " ".join(decoding.result().split())
        else:
            logger.warning("an utterance was not understood: %s", error, exc_info=not isinstance(error, SpeechError))
            self._failed(str(error) if isinstance(error, SpeechError) else "")
        return self._known_text

    async def _heard(self, pcm: bytes) -> str:
        return await self._ears.recognizer.transcribe(pcm, hotwords=self._ears.hotwords)

    def _failed(self, reason: str = "") -> None:
        """Say once that some of it was not understood. The utterance goes on."""
        if not self._complained and not self.over:
            self._complained = True
            name = self._ears.recognizer.name
            self._listener.failed(NoRecognizer(f"The model `{name}` did not understand this: {reason or 'it failed'}."))


def _ms(samples: int) -> int:
    return samples * 1000 // HEARING_RATE
