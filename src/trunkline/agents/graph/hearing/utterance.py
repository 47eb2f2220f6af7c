"""One utterance: how much sound it may be, and in which order is told what was heard.

    SpeechStart  (Partial)*  SegmentFinal   ...as often as there is speech, and a pause after it; the next SpeechStart
                                            may come before the SegmentFinal, whose words take longer
    UtteranceFinal                          once, with all segments; also if nobody spoke

The last segment goes without a `SegmentFinal` where `UtteranceFinal` follows at once. An utterance that is cancelled or
too long ends without any of them, and from then on nothing is told.

How speech is found and understood is for `mock` and `real`. They get the sound in small pieces, so that nobody else has
to wait for long, and tell what they find by `_speech`, `_partial`, `_segment` and `_close`.
"""

from __future__ import annotations

import asyncio

from trunkline.agents.graph.hearing.pcm import PcmFormat
from trunkline.base.values import Value
from trunkline.core.faults import UtteranceTooLong
from trunkline.core.graph.ordinals import TranscriptUpdateKind as Kind
from trunkline.core.graph.turns import TranscriptListener

#: The longest utterance there is: at the rate that recognizers want it takes 19 MiB.
MAX_UTTERANCE_MS = 600_000
#: The sound that is worked on before others have their turn: 4 ms of work. So thirty who send theirs all at once
#: do not keep one waiting who speaks.
_PIECE_MS = 100


class ListeningOptions(Value):
    """How one utterance is listened to."""

    format: PcmFormat
    min_silence_ms: int = 500
    """A pause of this length ends a segment."""
    hands_free: bool = True
    """Whether such a pause ends the utterance, too, once somebody has spoken."""
    limit_ms: int = 0
    """The most sound that it may have; 0: as much as there may be."""


class Utterance:
    """The sound and the transcript of one utterance, until it is over."""

    def __init__(self, options: ListeningOptions, listener: TranscriptListener) -> None:
        limit = options.limit_ms if 0 < options.limit_ms < MAX_UTTERANCE_MS else MAX_UTTERANCE_MS
        self.over = False
        self._options = options
        self._listener = listener
        self._limit_ms = limit
        self._room = limit * options.format.rate // 1000 * options.format.frame_bytes
        """The bytes that may still come."""
        self._texts: list[str] = []
        self._partial_text = ""
        self._told_ms = 0

    # See `HostedUtterance`.

    async def feed(self, pcm: bytes | bytearray) -> None:
        """Listen to more of it."""
        format = self._options.format
        step = format.rate * _PIECE_MS // 1000 * format.frame_bytes
        begin = 0
        while begin < len(pcm) and not self.over:
            end = min(begin + min(step, self._room), len(pcm))
            if end == begin:
                self.cancel()
                text = f"The utterance has more than {self._limit_ms} ms of sound."
                self._listener.failed(UtteranceTooLong(text))
                return
            self._room -= end - begin
            await self._hear(bytes(pcm[begin:end]))
            begin = end
            await asyncio.sleep(0)

    async def finish(self) -> None:
        """There is no more sound: understand the rest, and tell all of it."""
        if not self.over:
            await self._hear_out()
            self._close()

    def cancel(self) -> None:
        """Nobody wants to know any more."""
        self.over = True

    def hurry(self) -> None:
        """It is about to be cancelled. Here, nothing is waited for."""

    # For those who listen.

    async def _hear(self, pcm: bytes) -> None:
        """Listen to a piece."""
        raise NotImplementedError

    async def _hear_out(self) -> None:
        """That was all: see to it that the last segment's text is there."""
        raise NotImplementedError

    def _speech(self, at_ms: int) -> None:
        """Somebody began to speak."""
        self._tell(Kind.SPEECH_START, "", at_ms)

    def _partial(self, text: str, at_ms: int) -> None:
        """The segment seems to say this, so far."""
        if text and text != self._partial_text:
            self._partial_text = text
            self._tell(Kind.PARTIAL, text, at_ms)

    def _segment(self, text: str, at_ms: int, *, last: bool = False) -> None:
        """The segment says this. `last`: the utterance is closed next."""
        self._partial_text = ""
        if text and not self.over:
            self._texts.append(text)
        if not last:
            self._tell(Kind.SEGMENT_FINAL, text, at_ms)

    def _close(self, at_ms: int | None = None) -> None:
        """Tell everything, and be over. By default, all of the sound was listened to."""
        if not self.over:
            text, at_ms = " ".join(self._texts), self._consumed_ms if at_ms is None else at_ms
            # Over first: whoever hears the last word may begin the next utterance.
            told_ms = max(self._told_ms, min(at_ms, self._consumed_ms))
            self.cancel()
            self._listener.update(Kind.UTTERANCE_FINAL, text, told_ms)

    @property
    def _consumed_ms(self) -> int:
        format = self._options.format
        whole = self._limit_ms * format.rate // 1000 - -(-self._room // format.frame_bytes)
        return whole * 1000 // format.rate

    def _tell(self, kind: int, text: str, at_ms: int) -> None:
        if not self.over:
            # What was told never goes back, and never beyond what came.
            self._told_ms = max(self._told_ms, min(at_ms, self._consumed_ms))
            self._listener.update(kind, text, self._told_ms)
