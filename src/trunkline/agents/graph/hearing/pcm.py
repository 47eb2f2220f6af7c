"""Sound as clients send it: samples of 16 bits, little-endian, in one channel or two, at a rate of their choice.

What comes out does not depend on how the sound was cut into pieces. A filter whose taps are whole numbers sees to that:
its sums are exact, in whichever order they are made.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache
from importlib import import_module
from math import gcd
from typing import TYPE_CHECKING

from trunkline.base.values import Value
from trunkline.core.faults import BadAudio
from trunkline.models.voice.engines import HEARING_RATE
from trunkline.models.voice.sound import SAMPLE_BYTES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MIN_RATE, MAX_RATE = 8000, 48000
SAMPLE_BITS = 8 * SAMPLE_BYTES

#: Zero crossings of the filter on each side: what is folded back into speech is 50 dB below it, and less.
_CROSSINGS = 16
#: The part of the band that is kept. The rest is where the filter falls off.
_BAND = 0.92
#: Positions between two samples that have taps of their own. Rates that need more take the nearest: 54 dB below speech.
_MAX_PHASES = 640
#: What the taps of one position add up to.
_UNITY = 1 << 15
#: Samples that are made at once: what lies in between stays in the cache.
_BLOCK = 2048


async def ready() -> None:
    """See to it that sound can be computed with at once: to import what that needs takes a fifth of a second."""
    await asyncio.to_thread(import_module, "numpy")


class PcmFormat(Value):
    """The format of one stream of sound.

    Raises:
        BadAudio: from `check`: it is not understood.
    """

    rate: int = HEARING_RATE
    channels: int = 1
    bits: int = SAMPLE_BITS

    def check(self) -> None:
        """See to it that it is a format that we understand."""
        if self.bits != SAMPLE_BITS:
            raise BadAudio(f"Samples have {SAMPLE_BITS} bits, and not {self.bits}.")
        if self.channels not in (1, 2):
            raise BadAudio(f"Sound has 1 or 2 channels, and not {self.channels}.")
        if not MIN_RATE <= self.rate <= MAX_RATE:
            raise BadAudio(f"The sample rate is from {MIN_RATE} to {MAX_RATE} Hz, and not {self.rate}.")

    @property
    def frame_bytes(self) -> int:
        """The bytes of one moment, in all channels."""
        return SAMPLE_BYTES * self.channels


class Mono:
    """Brings a stream of sound into one channel, at its own rate."""

    def __init__(self, format: PcmFormat) -> None:
        self._format = format
        self._rest = b""

    def feed(self, pcm: bytes) -> NDArray[np.int16]:
        """The samples that are complete by now: a moment may come in two pieces."""
        import numpy as np

        if self._rest:
            pcm = self._rest + pcm
        whole = len(pcm) // self._format.frame_bytes * self._format.frame_bytes
        self._rest = pcm[whole:]
        samples = np.frombuffer(pcm, "<i2", whole // SAMPLE_BYTES)
        if self._format.channels == 1:
            return samples.astype(np.int16, copy=False)
        pairs = samples.reshape(-1, 2).astype(np.int32)
        return ((pairs[:, 0] + pairs[:, 1]) >> 1).astype(np.int16)


class Resampler:
    """Brings a stream of samples to another rate, by default `HEARING_RATE`."""

    def __init__(self, rate: int, to: int = HEARING_RATE) -> None:
        common = gcd(rate, to)
        # Each step forward in the output is so many parts of a step in the input.
        self._step, self._parts = rate // common, to // common
        self._reach = _reach(rate, to)
        self._rates = rate, to
        self._held: NDArray[np.float64] | None = None
        self._first = -self._reach
        """The position of the first sample that is held. There is silence before the beginning."""
        self._taken = self._made = 0

    def feed(self, samples: NDArray[np.int16]) -> bytes:
        """The sound at the new rate, as far as it is known."""
        if self._step == self._parts:
            return samples.astype("<i2", copy=False).tobytes()
        import numpy as np

        if self._held is None:
            self._held = np.zeros(self._reach)
        self._taken += len(samples)
        # The last output whose right neighbours are all there.
        end = (self._taken - self._reach - 1) * self._parts // self._step + 1
        return self._up_to(end, np.concatenate((self._held, samples)))

    def flush(self) -> bytes:
        """The rest, with silence after it. Nothing may be fed any more."""
        if self._held is None:
            return b""
        import numpy as np

        end = -(-self._taken * self._parts // self._step)
        return self._up_to(end, np.concatenate((self._held, np.zeros(self._reach + 1))))

    def _up_to(self, end: int, held: NDArray[np.float64]) -> bytes:
        """The samples before `end` that were not made yet. What is needed later is held on to."""
        import numpy as np

        self._held = held
        if end <= self._made:
            return b""
        taps = _taps(*self._rates)
        phases, width = taps.shape
        windows = np.lib.stride_tricks.sliding_window_view(held, width)
        made = np.empty(end - self._made)
        for begin in range(self._made, end, _BLOCK):
            numbers = np.arange(begin, min(begin + _BLOCK, end))
            whole, part = np.divmod(numbers * self._step, self._parts)
            which = part * phases // self._parts
            rows = windows[whole - self._reach - self._first]
            made[begin - self._made : begin - self._made + len(numbers)] = np.einsum("ij,ij->i", rows, taps[which])
        self._made = end
        keep = max(0, self._made * self._step // self._parts - self._reach - self._first)
        self._held = held[keep:].copy()
        self._first += keep
        rounded: bytes = np.clip(np.floor(made / _UNITY + 0.5), -32768, 32767).astype("<i2").tobytes()
        return rounded


def _reach(rate: int, to: int) -> int:
    """The neighbours on each side that a sample is made of. Of a faster stream more are needed."""
    return -(-_CROSSINGS * max(rate, to) // to)


@lru_cache(maxsize=8)
def _taps(rate: int, to: int) -> NDArray[np.float64]:
    """The filter, for each position between two samples; whole numbers."""
    import numpy as np

    phases = min(to // gcd(rate, to), _MAX_PHASES)
    reach = _reach(rate, to)
    cutoff = _BAND * min(1.0, to / rate)
    distance = np.arange(-reach, reach + 1) - np.arange(phases)[:, None] / phases
    window = np.cos(np.clip(distance / (reach + 1), -1, 1) * np.pi / 2) ** 2
    taps = np.sinc(distance * cutoff) * window
    made: NDArray[np.float64] = np.rint(taps / taps.sum(1, keepdims=True) * _UNITY)
    return made
