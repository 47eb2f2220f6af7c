"""Which detector there is, and whether anybody speaks in a piece of sound."""

from __future__ import annotations

import logging
from functools import cache

from trunkline.base.extras import adding
from trunkline.models.voice import silero
from trunkline.models.voice.energy import EnergyDetector
from trunkline.models.voice.engines import HEARING_RATE, Detector

logger = logging.getLogger(__name__)

#: From this probability on a window counts as speech.
SPEECH = 0.5
#: So many windows of speech, and somebody speaks: a word as short as "no" has three. A click has one or two.
SPEECH_WINDOWS = 3
#: What is looked at before it is asked again whether that was enough.
_LOOK_BYTES = HEARING_RATE // 2


def make_detector(threshold: float = SPEECH) -> Detector:
    """A detector for one stream: Silero's, or where that is not installed one that goes by loudness.

    The threshold is for the latter, which decides by itself; Silero's probabilities are what they are.
    """
    if silero.is_installed():
        return silero.SileroDetector()
    _say_once()
    return EnergyDetector(threshold)


@cache
def _say_once() -> None:
    logger.warning("speech is told from noise by its loudness alone: Silero is missing. %s", adding("voice"))


def has_speech(pcm: bytes) -> bool:
    """Whether somebody speaks. Reads no further than it must."""
    detector = make_detector()
    heard = 0
    for begin in range(0, len(pcm), _LOOK_BYTES):
        heard += sum(probability >= SPEECH for probability in detector.feed(pcm[begin : begin + _LOOK_BYTES]))
        if heard >= SPEECH_WINDOWS:
            return True
    return False
