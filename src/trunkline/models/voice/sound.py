"""Pieces of sound at `HEARING_RATE`: as numbers, and cut where nobody is cut off in a word."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from trunkline.models.voice.engines import HEARING_RATE

if TYPE_CHECKING:
    import numpy as np

    Samples: TypeAlias = np.ndarray[Any, np.dtype[np.float32]]

#: A sample of 16 bits.
SAMPLE_BYTES = 2
#: What is looked at to find a quiet place: shorter than the pauses between words.
_LOOK = HEARING_RATE // 20
#: Louder than any 16 bits can be.
_FULL_SCALE = 32768.0


def samples(pcm: bytes) -> Samples:
    """Sound as numbers from -1 to 1. Half a sample at the end does not count."""
    import numpy as np

    whole = len(pcm) // SAMPLE_BYTES * SAMPLE_BYTES
    return np.frombuffer(pcm[:whole], "<i2").astype(np.float32) / np.float32(_FULL_SCALE)


def pieces(sound: Samples, seconds: float) -> Iterator[Samples]:
    """The sound in pieces of at most so many seconds, cut at the quietest place of the last third of each."""
    longest = int(seconds * HEARING_RATE)
    while len(sound) > longest:
        cut = last_pause(sound[:longest])
        yield sound[:cut]
        sound = sound[cut:]
    if len(sound):
        yield sound


def last_pause(sound: Samples) -> int:
    """The quietest place in the last third of a sound."""
    import numpy as np

    begin = len(sound) * 2 // 3
    looks = (len(sound) - begin) // _LOOK
    parts = sound[begin : begin + looks * _LOOK].reshape(looks, _LOOK)
    return begin + int(np.argmin((parts * parts).sum(1))) * _LOOK + _LOOK // 2
