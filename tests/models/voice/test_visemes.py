from __future__ import annotations

from itertools import pairwise

import pytest

from trunkline.models.voice.marks import VISEME, SpokenMark
from trunkline.models.voice.visemes import VISEMES, viseme_of, visemes


def test_there_are_fifteen() -> None:
    assert VISEMES == ("sil", "PP", "FF", "TH", "DD", "kk", "CH", "SS", "nn", "RR", "aa", "E", "ih", "oh", "ou")


@pytest.mark.parametrize(
    ("phonemes", "viseme"),
    [
        ("p b m", "PP"),
        ("f v", "FF"),
        ("θ ð", "TH"),
        ("t d ɾ", "DD"),
        ("k g ɡ ŋ h x", "kk"),
        ("ʃ ʒ ʧ", "CH"),
        ("s z", "SS"),
        ("n l ɫ ɲ", "nn"),
        ("r ɹ ʁ ɚ ɝ", "RR"),
        ("a ɑ æ ʌ aɪ aʊ ˈɑː", "aa"),
        ("e ɛ ə eɪ ɜː", "E"),
        ("i ɪ iː j ᵻ", "ih"),
        ("o ɔ oʊ ɔɪ ɔː ø", "oh"),
        ("u ʊ w uː", "ou"),
        ("\N{DIGIT ONE} . ! ~", "sil"),
        ("ˈ ː ˌ \N{COMBINING TILDE}", ""),
    ],
)
def test_each_phoneme_has_one(phonemes: str, viseme: str) -> None:
    assert {viseme_of(phoneme) for phoneme in phonemes.split()} == {viseme}
    assert viseme in ("", *VISEMES)


def test_nothing_is_silence() -> None:
    assert viseme_of("") == viseme_of(" ") == "sil"


def test_they_follow_one_another_from_the_beginning_to_the_end() -> None:
    spoken = ["", "h", "ə", "l", "ˈ", "o", "ʊ", "ː", " ", "b", "m", "a", ".", ""]
    times = [(phoneme, 10 * at, 10 * at + 10) for at, phoneme in enumerate(spoken)]
    found = list(visemes(times, 15))
    assert [(mark.text, mark.start, mark.end) for mark in found] == [
        ("sil", 0, 10),
        ("kk", 10, 20),
        ("E", 20, 30),
        ("nn", 30, 40),
        # The stress belongs to what follows, the length to what is before it, and the short pause to nobody.
        ("oh", 40, 60),
        ("ou", 60, 90),
        ("PP", 90, 110),
        ("aa", 110, 140),
    ]
    assert all(mark.kind == VISEME for mark in found)
    assert all(one.end == other.start for one, other in pairwise(found))


def test_a_long_pause_shuts_the_mouth() -> None:
    assert list(visemes([("a", 0, 10), ("", 10, 40), ("a", 40, 50), ("a", 50, 50)], 15)) == [
        SpokenMark(VISEME, "aa", 0, 10),
        SpokenMark(VISEME, "sil", 10, 40),
        SpokenMark(VISEME, "aa", 40, 50),
    ]
    assert list(visemes([], 15)) == []
