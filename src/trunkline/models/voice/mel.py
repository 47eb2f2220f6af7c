"""The picture of a sound that Whisper looks at: how loud it is, by pitch and time.

80 bands as wide as the ear hears them, 100 columns a second, in logarithms over a range of 80 dB.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from trunkline.models.voice.engines import HEARING_RATE

if TYPE_CHECKING:
    from trunkline.models.voice.sound import Samples

BANDS = 80
#: Samples from one column to the next, and those that one column is made of.
STEP, WINDOW = 160, 400

#: The scale of the ear: even steps up to 1000 Hz, even ratios above, 27 for each factor of 6.4.
_LINEAR_HZ, _BREAK_HZ, _RATIO, _RATIO_STEPS = 200.0 / 3, 1000.0, 6.4, 27.0
#: The quietest that counts, before the logarithm.
_FLOOR = 1e-10
#: Decades that are kept below the loudest.
_RANGE = 8.0


def picture(sound: Samples, columns: int) -> Samples:
    """The picture of a sound that is followed by silence up to so many columns: `BANDS` rows."""
    import numpy as np

    sound = sound[: columns * STEP]
    filled = min(columns, len(sound) // STEP + 2)
    room = (filled - 1) * STEP + WINDOW
    half = WINDOW // 2
    mirrored = sound[1 : half + 1][::-1]
    padded = np.zeros(room, np.float32)
    padded[half - len(mirrored) : half] = mirrored
    padded[half : half + len(sound)] = sound[: room - half]
    frames = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[::STEP] * _hann()
    power = np.abs(np.fft.rfft(frames)) ** 2
    logarithms = np.full((BANDS, columns), np.log10(_FLOOR))
    logarithms[:, :filled] = np.log10(np.maximum(_bank() @ power.T, _FLOOR))
    logarithms = np.maximum(logarithms, logarithms.max() - _RANGE)
    made: Samples = ((logarithms + 4.0) / 4.0).astype(np.float32)
    return made


@cache
def _hann() -> Samples:
    import numpy as np

    return (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)).astype(np.float32)


@cache
def _bank() -> Samples:
    """For each band a triangle over the frequencies, of area 1."""
    import numpy as np

    knee = _BREAK_HZ / _LINEAR_HZ
    top = knee + np.log(HEARING_RATE / 2 / _BREAK_HZ) / np.log(_RATIO) * _RATIO_STEPS
    marks = np.linspace(0.0, top, BANDS + 2)
    edges = np.where(
        marks < knee,
        marks * _LINEAR_HZ,
        _BREAK_HZ * np.exp((marks - knee) * np.log(_RATIO) / _RATIO_STEPS),
    )
    low, middle, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    pitch = np.fft.rfftfreq(WINDOW, 1 / HEARING_RATE)[None, :]
    triangles = np.minimum((pitch - low) / (middle - low), (high - pitch) / (high - middle))
    made: Samples = (np.maximum(triangles, 0.0) * 2.0 / (high - low)).astype(np.float32)
    return made
