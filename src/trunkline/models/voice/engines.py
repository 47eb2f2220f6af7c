"""What hears and speaks, as its users see it.

A recognizer or a voice is one model, loaded, ready to be used by any number of conversations at once; it does one thing
at a time and lets the others wait in order. A detector belongs to one stream of sound.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from trunkline.core.faults import ProviderError
from trunkline.models.voice.marks import Marks, WantedSpeech

#: Sound that is heard is brought to this rate first, in one channel of 16 bits, little-endian.
HEARING_RATE = 16_000


class SpeechError(ProviderError):
    """The engine could not do it. The text is safe to show."""


class Detector(Protocol):
    """Tells speech from everything else, in one stream of sound at `HEARING_RATE`."""

    @property
    def window_ms(self) -> int:
        """The sound that one probability speaks of."""

    def feed(self, pcm: bytes) -> list[float]:
        """The probability of speech in each window that is complete by now.

        Blocks, some 35 ms for a second of sound: it is called in a thread.
        """


class Recognizer(Protocol):
    """One model that writes down what is said."""

    @property
    def name(self) -> str:
        """What the catalog calls it."""

    @property
    def segment_seconds(self) -> float:
        """The longest sound that it writes down quickly enough, and with little memory, to do so while one speaks."""

    async def transcribe(self, pcm: bytes, *, hotwords: Sequence[str] = ()) -> str:
        """The words in a piece of sound at `HEARING_RATE`; "" where nobody speaks.

        Cancelling it gives up the place in the queue; a decoding that has begun ends soon, unheard.

        Raises:
            SpeechError: it did not work.
        """

    async def close(self) -> None:
        """Free the memory, after what is going on. Idempotent."""


class Voice(Protocol):
    """One model that speaks."""

    @property
    def name(self) -> str:
        """What the catalog calls it."""

    @property
    def sample_rate(self) -> int:
        """Of the sound that it makes: one channel of 16 bits, little-endian."""

    @property
    def voices(self) -> tuple[str, ...]:
        """The names of its speakers; the place of each is the number by which it is asked for."""

    def speak(self, text: str, *, speaker: int = 0, speed: float = 1.0) -> AsyncGenerator[bytes, None]:
        """The sound of a text, in pieces as they are made, none of them empty. Leaving the iterator ends the work.

        Raises:
            SpeechError: it did not work.
        """

    def say(self, wanted: WantedSpeech) -> AsyncGenerator[bytes | Marks, None]:
        """The same of a text that may have phonemes in it, with marks before the sound that they are about, if they are
        wanted. Raises as `speak`."""

    async def close(self) -> None:
        """Let go of it, also of a process of its own. Idempotent."""
