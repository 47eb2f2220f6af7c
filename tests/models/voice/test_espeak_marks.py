from __future__ import annotations

import pytest

from trunkline.models.voice.espeak_marks import EVENT_END, EVENT_PHONEME, EVENT_WORD, Happening, marks
from trunkline.models.voice.espeak_phonemes import mnemonics, spelled
from trunkline.models.voice.marks import IPA_BEGIN, OWN_BEGIN, PHONEMES_END, WORD

TEXT = "Of the 42, yes."


def happened() -> list[Happening]:
    """As the engine tells it: `of the` as one word, a figure as two, and silence behind the comma."""
    events = [(1, "ʌ"), (1, "v"), (1, "ð"), (1, "ə"), (8, "f"), (9, "t"), (9, ""), (12, "j"), (12, "s"), (14, "")]
    found = [Happening(EVENT_PHONEME, position, 10 * at, text) for at, (position, text) in enumerate(events)]
    starts = [(1, 0), (8, 40), (9, 50), (12, 70)]
    return [*(Happening(EVENT_WORD, *start, "") for start in starts), *found, Happening(EVENT_END, 15, 95, "")]


def test_words_are_those_between_blanks() -> None:
    found = marks(TEXT.split(), TEXT, happened(), 100, 1000)
    assert [(mark.text, mark.start, mark.end) for mark in found if mark.kind == WORD] == [
        ("Of", 0, 16),
        ("the", 16, 40),
        ("42,", 40, 60),
        ("yes.", 70, 90),
    ]
    starts = [mark.start for mark in found]
    assert starts == sorted(starts)
    shown = [mark for mark in found if mark.kind != WORD]
    assert (shown[0].start, shown[-1].end) == (0, 100)


def test_of_a_text_without_events_the_mouth_is_shut() -> None:
    assert [(mark.text, mark.start, mark.end) for mark in marks([], "...", [], 50, 1000)] == [("sil", 0, 50)]


@pytest.mark.parametrize(
    ("ipa", "written"),
    [("həlˈoʊ", "h@l'oU"), ("tʃɜːtʃ", "tS3:tS"), ("ˈkæt", "'kat"), ("θɪŋ", "TIN"), ("dʒɔɪ", "dZOI")],
)
def test_phonemes_are_written_as_the_engine_writes_them(ipa: str, written: str) -> None:
    assert mnemonics(ipa) == written


def test_only_what_is_marked_is_phonemes() -> None:
    text = f"a [[b]] {IPA_BEGIN}kæt{PHONEMES_END}'s {OWN_BEGIN}k'at{PHONEMES_END} {IPA_BEGIN}a]]b{PHONEMES_END}."
    assert spelled(text) == "a [b]] [[kat]]'s [[k'at]] [[ab]]."
    assert len(spelled(text).split()) == len(text.split())
