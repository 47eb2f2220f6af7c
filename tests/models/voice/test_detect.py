from __future__ import annotations

import logging

import pytest

from tests.support.speech import noise, silence
from trunkline.models.voice import detect
from trunkline.models.voice.detect import EnergyDetector


@pytest.fixture
def _no_silero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detect, "find_spec", lambda name: None)
    detect._say_once.cache_clear()


def test_what_is_louder_than_the_background_is_speech() -> None:
    detector = EnergyDetector()
    assert set(detector.feed(noise(1, 80))) == {0.0}
    assert set(detector.feed(noise(0.5, 3000))) == {1.0}
    assert set(detector.feed(noise(1, 80))[1:]) == {0.0}
    assert detector.window_ms == 32


def test_a_steady_noise_becomes_background() -> None:
    detector = EnergyDetector()
    heard = detector.feed(noise(30, 1000))
    assert heard[0] == 1.0
    assert set(heard[-100:]) == {0.0}
    assert set(detector.feed(noise(0.5, 10_000))) == {1.0}


def test_a_higher_threshold_asks_for_more() -> None:
    room, voice = noise(1, 100), noise(0.5, 300)
    sums = []
    for threshold in (-1.0, 0.0, 0.5, 1.0, 7.0, float("nan")):
        detector = EnergyDetector(threshold)
        detector.feed(room)
        sums.append(sum(detector.feed(voice)))
    assert sums[0] == sums[1] > 0
    assert sums[3] == sums[4] == 0
    assert sums[2] == sums[5]


def test_however_sound_is_cut_the_answer_is_the_same() -> None:
    sound = noise(0.5, 50) + noise(0.3, 4000) + noise(0.5, 50)
    whole, cut = EnergyDetector().feed(sound), EnergyDetector()
    assert [each for begin in range(0, len(sound), 77) for each in cut.feed(sound[begin : begin + 77])] == whole


@pytest.mark.usefixtures("_no_silero")
def test_without_silero_loudness_decides_and_that_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert isinstance(detect.make_detector(0.5), EnergyDetector)
        detect.make_detector(0.5)
    assert len(caplog.records) == 1
    assert "trunkline[voice]" in caplog.text or "[voice]" in caplog.text
    assert detect.has_speech(silence(0.5) + noise(0.2, 4000))
    assert not detect.has_speech(silence(1))
    assert not detect.has_speech(b"")
    # A click is no word.
    assert not detect.has_speech(silence(0.5) + noise(0.03, 8000) + silence(0.5))
