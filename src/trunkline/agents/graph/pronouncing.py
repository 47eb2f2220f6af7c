"""How a graph says its words: a map from a word to a text that is said in its place, or to phonemes.

    Cthulhu: kuh-thoo-loo
    Seoirse: /ˈʃoːɾˠʃə/
    gif: "[[dZ'If]]"

A word counts as a whole, in capitals or not. Between slashes are phonemes of the International Phonetic Alphabet,
between double brackets those of the voice's own writing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from trunkline.agents.graph.storages import KIND_NAMES, StringStorage
from trunkline.base.values import Value
from trunkline.core.faults import WrongStorage
from trunkline.core.graph.ordinals import StringStorageKind
from trunkline.models.voice.marks import IPA_BEGIN, OWN_BEGIN, PHONEMES_END, without_phonemes
from trunkline.models.voice.speakable import MAX_WORD

#: Words of one map.
MAX_WORDS = 10_000
#: Characters that are said for one word. A voice takes longer ones apart.
MAX_SAID = MAX_WORD - 16

_COMPOUND = re.compile(r"\w+(?:['’-]\w+)+|\w+")
_WORD = re.compile(r"\w+")
_PHONEMES = re.compile(r"/([^/\s]+)/|\[\[([^\[\]\s]+)\]\]")


class SpokenText(Value):
    """A text as it is said. `words`: what stands between blanks in it, each with the word that was written."""

    text: str
    words: tuple[tuple[str, int, str], ...]
    """As it is said, the place of the written word, and that word without the marks around it."""


class Pronunciations:
    """How some words are said.

    Raises:
        WrongStorage: the storage has no words, or more than can be.
    """

    def __init__(self, name: str, storage: StringStorage | None = None) -> None:
        self._words: dict[str, str] = {}
        if storage is None:
            return
        if storage.kind != StringStorageKind.MAP:
            raise WrongStorage(f"Pronunciations are a Map; `{name}` is a {KIND_NAMES[storage.kind]}.")
        if len(storage.keys) > MAX_WORDS:
            raise WrongStorage(f"`{name}` has {len(storage.keys)} words, and may have {MAX_WORDS}.")
        for word, said in zip(storage.keys, storage.lines, strict=True):
            self._words[word.casefold()] = _read(name, word, said)

    def __bool__(self) -> bool:
        return bool(self._words)

    def said(self, text: str) -> SpokenText:
        """How a text is said."""
        told: list[str] = []
        words: list[tuple[str, int, str]] = []
        for place, token in enumerate(without_phonemes(text).split()):
            spoken = _COMPOUND.sub(self._replaced, token) if self._words else token
            told.append(spoken)
            plain = _bare(token)
            words += ((part, place, plain) for part in spoken.split())
        return SpokenText(" ".join(told), tuple(words))

    def _replaced(self, found: re.Match[str]) -> str:
        whole = self._words.get(found[0].casefold())
        if whole is not None:
            return whole
        return _WORD.sub(lambda part: self._words.get(part[0].casefold(), part[0]), found[0])


class WordFinder:
    """Tells which written word a spoken one is, in the order in which they come."""

    def __init__(self, words: Sequence[tuple[str, int, str]]) -> None:
        self._words = words
        self._at = 0

    def find(self, spoken: str) -> tuple[int, str] | None:
        """The place of the written word, and itself; None of a word that is not one of them."""
        for at in range(self._at, len(self._words)):
            said, place, word = self._words[at]
            if said == spoken:
                self._at = at + 1
                return place, word
        return None


def _bare(token: str) -> str:
    """A word without the marks around it."""
    letters = [at for at, letter in enumerate(token) if letter.isalnum()]
    return token[letters[0] : letters[-1] + 1] if letters else token


def _read(name: str, word: str, said: str) -> str:
    """What is said for a word.

    Raises:
        WrongStorage: it is no word, or cannot be said.
    """
    if not _COMPOUND.fullmatch(word):
        raise WrongStorage(f"`{name}` has `{word[:MAX_SAID]}`, which is not one word.")
    told = without_phonemes(said).strip()
    if not told or len(told) > MAX_SAID:
        raise WrongStorage(f"`{name}` says `{word}` with nothing, or with more than {MAX_SAID} characters.")
    found = _PHONEMES.fullmatch(told)
    if found is not None:
        return f"{IPA_BEGIN}{found[1]}{PHONEMES_END}" if found[1] else f"{OWN_BEGIN}{found[2]}{PHONEMES_END}"
    if told.startswith(("/", "[[")):
        raise WrongStorage(f"`{name}` says `{word}` with phonemes that have blanks or brackets in them, or no end.")
    return told
