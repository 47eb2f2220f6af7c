"""Whisper's tokens and words, with a vocabulary of a few."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.speech import pulled
from trunkline.models.voice.whisper_words import FILE, WhisperTokens

#: Every byte, as the model's makers write it, and what is made of them, in that order.
BYTES = [chr(byte) for byte in (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))]
BYTES += [chr(0x100 + number) for number in range(256 - len(BYTES))]
MADE = ["\u0120t", "he", "\u0120the", "re", "\u0120th", "\u00c3\u00a9", "\u0120there"]
MARKS = ["<|endoftext|>", "<|en|>"]


@pytest.fixture(scope="module")
def words() -> WhisperTokens:
    return WhisperTokens(BYTES + MADE + MARKS)


def made(words: WhisperTokens, text: str) -> list[str]:
    return [words.text([token]) for token in words.tokens(text)]


def test_neighbours_that_make_the_lowest_token_are_joined_first(words: WhisperTokens) -> None:
    assert made(words, " the") == [" the"]
    assert made(words, " there") == [" there"]
    assert made(words, "there") == ["t", "he", "re"]
    # Not `he` and `er`, of which there is no word; nor ` th` and `e`, since `he` comes before ` th`.
    assert made(words, " thee") == [" the", "e"]


def test_words_are_not_joined_across_signs_figures_and_blanks(words: WhisperTokens) -> None:
    assert made(words, "he_re1he  the") == ["he", "_", "re", "1", "he", " ", " the"]


def test_every_text_comes_back_from_its_tokens(words: WhisperTokens) -> None:
    text = "".join(map(chr, (*range(0x250), 0x4E2D, 0x1F600))) + "there's " * 200 + "x" * 1000
    assert words.text(words.tokens(text)) == text
    assert words.text(words.tokens("a\ud800b")) == "a?b"


def test_marks_say_nothing_and_are_not_read_out_of_a_text(words: WhisperTokens) -> None:
    mark = words.mark("<|en|>")
    assert words.text([mark, *words.tokens("he"), mark, 10**6, -1]) == "he"
    assert mark not in words.tokens("<|en|>")


def test_half_a_character_does_not_break_a_text(words: WhisperTokens) -> None:
    assert words.text(words.tokens("\u4e2d")[:1]) == "\N{REPLACEMENT CHARACTER}"


def test_a_file_without_marks_is_refused(tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_text("a\nb\n")
    with pytest.raises(ValueError, match="marks"):
        WhisperTokens.read(str(path))


@pytest.mark.slow
def test_the_real_words_are_those_that_the_model_was_taught() -> None:
    real = WhisperTokens.read(os.path.join(os.path.dirname(pulled("whisper-base")), FILE))
    assert [real.mark(each) for each in ("<|endoftext|>", "<|en|>", "<|notimestamps|>")] == [50257, 50259, 50363]
    text = " The dragon Vaxildorth's gold: 12,345 pieces, na\u00efve \u4e2d\u6587 don't"
    assert made(real, " the dragon don't") == [" the", " dragon", " don", "'t"]
    assert real.text(real.tokens(text)) == text
