from __future__ import annotations

import numpy as np

from trunkline.models.voice import mel
from trunkline.models.voice.engines import HEARING_RATE
from trunkline.models.voice.sound import pieces, samples


def tone(hertz: float, seconds: float) -> np.ndarray:
    return np.sin(2 * np.pi * hertz * np.arange(int(seconds * HEARING_RATE)) / HEARING_RATE).astype(np.float32) / 2


def test_half_a_sample_at_the_end_does_not_count() -> None:
    assert samples(b"").tolist() == []
    assert samples(b"\x00\x40\x00\xc0\x01").tolist() == [0.5, -0.5]


def test_long_sound_is_cut_where_it_is_quiet_and_nothing_is_lost() -> None:
    sound = tone(200, 25)
    pause = slice(int(8.2 * HEARING_RATE), int(8.4 * HEARING_RATE))
    sound[pause] = 0
    cut = list(pieces(sound, 10))
    assert pause.start <= len(cut[0]) <= pause.stop
    assert all(len(piece) <= 10 * HEARING_RATE for piece in cut)
    assert np.concatenate(cut).tolist() == sound.tolist()
    assert [len(piece) for piece in pieces(sound[:100], 10)] == [100]
    assert list(pieces(sound[:0], 10)) == []


def test_a_tone_is_a_line_in_the_picture_at_its_pitch() -> None:
    bands = []
    for hertz in (200, 1000, 4000):
        picture = mel.picture(tone(hertz, 1), 300)
        assert picture.shape == (mel.BANDS, 300)
        assert picture.dtype == np.float32
        middle, behind = picture[:, 20:80], picture[:, 120:]
        assert np.max(middle) - np.max(behind) > 1.9
        assert len(set(middle.argmax(0).tolist())) == 1
        bands.append(int(middle.argmax(0)[0]))
    # Even steps up to 1000 Hz, ever wider ones above.
    assert bands == [4, 26, 62]


def test_a_picture_is_as_wide_as_it_is_wanted_and_silence_is_flat() -> None:
    assert mel.picture(tone(300, 5), 100).shape == (mel.BANDS, 100)
    assert mel.picture(samples(b""), 50).shape == (mel.BANDS, 50)
    assert np.ptp(mel.picture(np.zeros(1000, np.float32), 20)) < 1e-5


def test_what_comes_after_does_not_change_what_was_before() -> None:
    short, long = mel.picture(tone(500, 1), 200), mel.picture(tone(500, 1), 3000)
    assert np.allclose(short, long[:, :200])
