"""The words that Whisper's tokens stand for, and the tokens of a text.

The file has a word per line, and its line is its token. A word is bytes, each written as a character: those that can be
seen as themselves, and the others as the characters from U+0100 on. A word is made of two shorter ones whose tokens are
lower, and those of a text are found by joining again and again the two neighbours that make the lowest one.

Libraries can do this too; to read the words takes them a fifth of a second, in which nobody else in the process can do
anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from typing import Final

FILE: Final = "vocabulary.txt"

#: From here on the words are marks of the model's, such as the languages.
_FIRST_MARK = "<|endoftext|>"
#: Words are not joined across these borders. A blank belongs to the word behind it.
_PARTS = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")
#: The longest part that is looked at as a whole: the work grows with its square, and there is no longer word.
_PART_BYTES = 128


class WhisperTokens:
    """Those of one model."""

    def __init__(self, words: Iterable[str]) -> None:
        """Raises `ValueError` if the marks are missing, without which no model can be asked anything."""
        self._words = list(words)
        self._tokens = {word: token for token, word in enumerate(self._words)}
        if _FIRST_MARK not in self._tokens:
            raise ValueError("there are no marks among the words")
        self._marks = self._tokens[_FIRST_MARK]
        self._bytes = {character: byte for byte, character in enumerate(_characters())}

    @classmethod
    def read(cls, path: str) -> WhisperTokens:
        """Those of a file. Blocks.

        Raises:
            OSError: it cannot be read.
            ValueError: it has no words.
        """
        with open(path, encoding="utf-8", newline="\n") as file:
            return cls(file.read().rstrip("\n").split("\n"))

    def mark(self, name: str) -> int:
        """The token of a mark, or of a word.

        Raises:
            KeyError: there is none.
        """
        return self._tokens[name]

    def text(self, tokens: Iterable[int]) -> str:
        """What tokens say. Marks say nothing."""
        said = (self._words[token] for token in tokens if 0 <= token < self._marks)
        return bytes(self._bytes[each] for word in said for each in word).decode("utf-8", "replace")

    def tokens(self, text: str) -> list[int]:
        """The tokens of a text. What is written like a mark is none."""
        characters = _characters()
        found: list[int] = []
        for part in _PARTS.findall(text):
            data = part.encode("utf-8", "replace")
            for begin in range(0, len(data), _PART_BYTES):
                word = [characters[byte] for byte in data[begin : begin + _PART_BYTES]]
                found += (self._tokens[each] for each in self._joined(word))
        return found

    def _joined(self, word: list[str]) -> list[str]:
        none = len(self._words)
        while len(word) > 1:
            made = [self._tokens.get(first + second, none) for first, second in pairwise(word)]
            best = min(made)
            if best == none:
                break
            at = made.index(best)
            word[at : at + 2] = [word[at] + word[at + 1]]
        return word


@cache
def _characters() -> str:
    """The character of each byte."""
    seen = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))
    unseen = iter(range(0x100, 0x200))
    return "".join(chr(byte if byte in seen else next(unseen)) for byte in range(0x100))
