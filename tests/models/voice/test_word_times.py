from __future__ import annotations

from collections.abc import Sequence

from trunkline.models.voice.word_times import assigned, said_words, word_marks


def owners(alone: Sequence[str], together: str) -> list[int]:
    return assigned([list(word) for word in alone], list(together))


def spans(words: Sequence[str], owned: Sequence[int], first: int = 0) -> list[tuple[str, int, int]]:
    times = [(10 * at, 10 * at + 10) for at in range(len(owned))]
    return [(mark.text, mark.start, mark.end) for mark in word_marks(words, owned, times, first)]


def test_only_words_are_said() -> None:
    assert said_words('Well - "met", 42 ... \N{EM DASH} café!') == ["Well", '"met",', "42", "café!"]


def test_phonemes_belong_to_the_words_that_they_are_of() -> None:
    assert owners(["həloʊ", "wɜld"], "həloʊ wɜld.") == [0, 0, 0, 0, 0, -1, 1, 1, 1, 1, -1]


def test_words_that_are_joined_are_told_apart() -> None:
    assert owners(["ʌv", "ðə", "wɜld"], "əvðə wɜld") == [0, 0, 1, 1, -1, 2, 2, 2, 2]


def test_a_word_that_is_said_otherwise_has_its_run() -> None:
    assert owners(["ðə", "end", "naʊ"], "ðiː ɛnd naʊ")[4:7] == [1, 1, 1]


def test_marks_follow_one_another() -> None:
    assert spans(["Hello", "world"], [0, 0, -1, 1, 1]) == [("Hello", 0, 20), ("world", 30, 50)]


def test_a_word_without_a_phoneme_has_a_part_of_the_one_before_it() -> None:
    assert spans(["of", "the", "end"], [0, 0, 2, 2]) == [("of", 0, 8), ("the", 8, 20), ("end", 20, 40)]
    # At the beginning, of the one behind it.
    assert spans(["a", "bc"], [1, 1, 1]) == [("a", 0, 10), ("bc", 10, 30)]
    assert spans(["a", "b", "c"], [2, 2], first=2) == [("c", 0, 20)]
    assert spans(["a"], [-1, -1]) == []
