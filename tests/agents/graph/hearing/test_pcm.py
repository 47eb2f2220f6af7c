"""Sound of any format becomes sound at 16 kHz, and does not change on the way."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from trunkline.agents.graph.hearing.pcm import Mono, PcmFormat, Resampler
from trunkline.core.fault_table import form_of
from trunkline.core.faults import Fault

RATES = (8000, 8001, 11025, 16000, 22050, 24000, 32000, 44100, 47999, 48000)


def tone(rate: int, hertz: int) -> NDArray[np.int16]:
    made: NDArray[np.int16] = np.rint(10000 * np.sin(2 * np.pi * hertz * np.arange(rate) / rate)).astype(np.int16)
    return made


def resampled(rate: int, samples: NDArray[np.int16]) -> NDArray[np.int16]:
    resampler = Resampler(rate)
    return np.frombuffer(resampler.feed(samples) + resampler.flush(), "<i2")


@pytest.mark.parametrize("rate", RATES)
def test_a_tone_stays_the_tone_it_was(rate: int) -> None:
    made = resampled(rate, tone(rate, 440))
    assert len(made) == 16000
    # The ends touch the silence around them.
    assert np.abs(made - tone(16000, 440).astype(int))[100:-100].max() < 10


@pytest.mark.parametrize("rate", [22050, 44100, 48000])
def test_what_16_khz_cannot_carry_is_left_out_and_not_folded_back(rate: int) -> None:
    assert np.abs(resampled(rate, tone(rate, 10500))[100:-100]).max() < 50


@pytest.mark.parametrize("rate", RATES)
def test_where_the_sound_is_cut_makes_no_difference(rate: int) -> None:
    random = Random(rate)
    samples = np.array([random.randrange(-32768, 32768) for _ in range(4000)], np.int16)
    whole = resampled(rate, samples).tobytes()
    resampler, made, at = Resampler(rate), b"", 0
    while at < len(samples):
        step = random.choice((0, 1, 2, 5, 160, 441))
        made += resampler.feed(samples[at : at + step])
        at += step
    assert made + resampler.flush() == whole


def test_two_channels_become_one_also_when_a_moment_is_cut_in_two() -> None:
    pairs = np.array([[100, 300], [-32768, -32768], [32767, 32767], [5, -5]], "<i2").tobytes()
    for cut in range(len(pairs) + 1):
        mono = Mono(PcmFormat(channels=2))
        made = np.concatenate((mono.feed(pairs[:cut]), mono.feed(pairs[cut:])))
        assert made.tolist() == [200, -32768, 32767, 0]


@pytest.mark.parametrize(
    ("format", "named"),
    [(PcmFormat(7999), "7999"), (PcmFormat(48001), "48001"), (PcmFormat(channels=3), "3"), (PcmFormat(bits=24), "24")],
)
def test_other_formats_are_refused_by_name(format: PcmFormat, named: str) -> None:
    with pytest.raises(Fault, match=named) as caught:
        format.check()
    assert form_of(caught.value.kind).tryll == 4101
