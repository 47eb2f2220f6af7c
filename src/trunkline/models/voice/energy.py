"""A detector of speech that goes by loudness alone: what is clearly louder than the background counts as speech.

For where Silero is not installed. A door that slams is speech to it; a steady noise soon is not.
"""

from __future__ import annotations

import math
import sys
from array import array

from trunkline.models.voice.engines import HEARING_RATE

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


class EnergyDetector:
    """A `Detector` that is sure of itself: its probabilities are 0 and 1."""

    window_ms = _WINDOW_SAMPLES * 1000 // HEARING_RATE

    def __init__(self, threshold: float = 0.5) -> None:
        share = min(max(threshold, 0.0), 1.0) if math.isfinite(threshold) else 0.5
        self._margin = 10 ** ((BASE_DB + THRESHOLD_DB * share) / 20)
        self._background = START_RMS
        self._rest = b""

    def feed(self, pcm: bytes) -> list[float]:
        """1.0 for each complete window that is loud, 0.0 for the others."""
        sound = self._rest + pcm
        end = len(sound) // WINDOW_BYTES * WINDOW_BYTES
        self._rest = sound[end:]
        return [self._judge(sound[begin : begin + WINDOW_BYTES]) for begin in range(0, end, WINDOW_BYTES)]

    def _judge(self, window: bytes) -> float:
        values = array("h", window)
        if sys.byteorder == "big":
            values.byteswap()
        loudness = math.sqrt(sum(value * value for value in values) / _WINDOW_SAMPLES)
        speech = loudness >= FLOOR_RMS and loudness >= self._background * self._margin
        self._background = max(min(loudness, self._background * 10 ** (RISE_DB / 20)), 1.0)
        return 1.0 if speech else 0.0
