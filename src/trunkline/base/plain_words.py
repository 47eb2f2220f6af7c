"""Texts as plain words, for full-text search: without accents, without case, without signs.

A text and what is looked for in it are made plain in the same way, and every database is given the same words. So all
find the same, and no query is a syntax error: of `"`, `*` or `NEAR(` nothing is left.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import islice

#: The longest query, in characters; more is cut off.
MAX_QUERY = 160
#: Words of a query that count. More would only make it slower.
MAX_TERMS = 8

#: Most texts are plain English, and a table is ten times as fast as a pattern.
_ASCII_SIGNS = {code: " " for code in range(128) if not chr(code).isalnum()}
_SIGNS = re.compile(r"[\W_]+")
#: Scripts without spaces between words: each of their characters is a word, so that parts of a sentence are found.
_UNSPACED = re.compile("([\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])")


def plain_words(text: str) -> list[str]:
    """The words of a text, as they are indexed and looked for."""
    if text.isascii():
        return text.lower().translate(_ASCII_SIGNS).split()
    decomposed = unicodedata.normalize("NFKD", text)
    text = "".join(char for char in decomposed if not unicodedata.combining(char))
    text = _UNSPACED.sub(r" \1 ", text)
    return _SIGNS.sub(" ", text.casefold()).split()


def phrases(query: str) -> list[list[str]]:
    """What a query looks for: for each of its words the plain words that stand one after another, the last of them
    perhaps the beginning of a longer one. All of them must be found; nothing, if the query has no word."""
    found = (plain_words(word) for word in query.strip()[:MAX_QUERY].split())
    return [phrase for phrase in found if phrase][:MAX_TERMS]


#: Of characters below this one, what they are without accents and case is remembered: those of alphabets.
_REMEMBERED = 0x2000


class _Folded(dict[int, str]):
    """Characters without accents and case, each as one."""

    def __missing__(self, code: int) -> str:
        plain = unicodedata.normalize("NFKD", chr(code)).casefold()[:1] or chr(code)
        if code < _REMEMBERED:
            self[code] = plain
        return plain


_FOLDED = _Folded()


def places_of(terms: Sequence[list[str]], text: str, most: int) -> list[tuple[int, int]]:
    """Where in a text the words of a query stand, as far as its characters tell: from and to, in order, without
    overlap, `most` at most."""
    folded = text.lower() if text.isascii() else text.translate(_FOLDED)
    words = sorted({word for phrase in terms for word in phrase}, key=len, reverse=True)
    if not words:
        return []
    found = re.finditer("|".join(map(_beginning, words)), folded)
    return [match.span() for match in islice(found, most)]


def _beginning(word: str) -> str:
    """A pattern for words that begin like this."""
    return re.escape(word) if _UNSPACED.match(word) else rf"(?<![^\W_]){re.escape(word)}"
