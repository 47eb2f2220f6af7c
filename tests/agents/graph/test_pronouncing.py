from __future__ import annotations

import pytest

from trunkline.agents.graph.pronouncing import MAX_SAID, MAX_WORDS, Pronunciations, WordFinder
from trunkline.agents.graph.storages import StringStorage
from trunkline.core.faults import WrongStorage
from trunkline.core.graph.ordinals import StringStorageKind as Kind
from trunkline.models.voice.marks import IPA_BEGIN, OWN_BEGIN, PHONEMES_END


def words(**said: str) -> Pronunciations:
    return Pronunciations("words", StringStorage("words", Kind.MAP, tuple(said.values()), tuple(said)))


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("Cthulhu rises.", "kuh-thoo-loo rises."),
        ("CTHULHU!", "kuh-thoo-loo!"),
        ('He said "cthulhu", twice.', 'He said "kuh-thoo-loo", twice.'),
        ("Cthulhu's friend", "kuh-thoo-loo's friend"),
        ("Cthulhus are many", "Cthulhus are many"),
        ("An SQL query", "An see quell query"),
        ("Seoirse came", f"{IPA_BEGIN}ˈʃoːrʃə{PHONEMES_END} came"),
        ("a gif", f"a {OWN_BEGIN}dZ'If{PHONEMES_END}"),
        ("", ""),
    ],
)
def test_whole_words_are_said_as_the_map_has_them(text: str, spoken: str) -> None:
    listed = words(Cthulhu="kuh-thoo-loo", sql="see quell", Seoirse="/ˈʃoːrʃə/", GIF="[[dZ'If]]")
    assert listed.said(text).text == spoken


def test_nobody_else_s_text_has_phonemes_in_it() -> None:
    assert words(a="b").said(f"x {IPA_BEGIN}y{PHONEMES_END}").text == "x y"
    assert Pronunciations("").said(f"{OWN_BEGIN}y{PHONEMES_END}").text == "y"


def test_spoken_words_are_found_as_they_were_written() -> None:
    said = words(SQL="see quell").said('The "SQL", - again: SQL.')
    finder = WordFinder(said.words)
    spoken = ["The", '"see', 'quell",', "again:", "see", "quell."]
    assert [finder.find(word) for word in spoken] == [
        (0, "The"),
        (1, "SQL"),
        (1, "SQL"),
        (3, "again"),
        (4, "SQL"),
        (4, "SQL"),
    ]
    assert finder.find("more") is None


@pytest.mark.parametrize(
    ("key", "said", "problem"),
    [
        ("two words", "x", "which is not one word"),
        ("!", "x", "which is not one word"),
        ("word", "", "with nothing"),
        ("word", "x" * (MAX_SAID + 1), f"more than {MAX_SAID}"),
        ("word", "/a b/", "phonemes"),
        ("word", "[[a", "phonemes"),
    ],
)
def test_what_cannot_be_said_is_refused(key: str, said: str, problem: str) -> None:
    with pytest.raises(WrongStorage, match=problem):
        words(**{key: said})
    words(word="x" * MAX_SAID)


def test_only_a_map_of_so_many_words_will_do() -> None:
    with pytest.raises(WrongStorage, match="is a List"):
        Pronunciations("lines", StringStorage("lines", Kind.LIST, ("a",)))
    keys = tuple(f"w{number}" for number in range(MAX_WORDS + 1))
    with pytest.raises(WrongStorage, match=f"may have {MAX_WORDS}"):
        Pronunciations("many", StringStorage("many", Kind.MAP, keys, keys))
    Pronunciations("many", StringStorage("many", Kind.MAP, keys[1:], keys[1:]))
