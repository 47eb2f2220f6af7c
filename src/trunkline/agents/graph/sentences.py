"""Sentences out of a text that is still being written, for a voice to say one while the next is being thought of.

    cut = Sentences(12)
    for piece in ("Well met. Have you co", "me far? I h", "ave."):
        for sentence in cut.feed(piece):
            ...                                # "Well met. Have you come far? "
    for sentence in cut.rest():
        ...                                    # "I have."

A sentence is as long as it is in the text: all of them together are the text. What is said of it is another matter:
marks that are there for the eye, and code, are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trunkline.base.values import Value
from trunkline.models.voice.speakable import MAX_CHARS, SENTENCE_END, has_words, place

#: A longer first sentence is said in parts: until it has one, nobody hears anything.
FIRST_CHARS = 120

#: Words whose period ends no sentence. One too many makes a long sentence, one too few an odd pause.
_ABBREVIATIONS = frozenset({
    "approx", "bros", "bzw", "ca", "capt", "cf", "cmdr", "col", "corp", "dept", "dr", "etc", "evtl", "fig", "figs",
    "gen", "ggf", "gov", "hon", "inc", "inkl", "jr", "lt", "ltd", "mlle", "mme", "mr", "mrs", "ms", "mt", "mx", "nr",
    "pp", "prof", "rev", "sen", "sgt", "sr", "st", "univ", "usw", "vgl", "vol", "vs",
})  # fmt: skip
_OPENING = "\"'\u2018\u201c\u00ab([*_"

_FENCE = "```"
_PICTURE_OR_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*(?:\s[^()]*)?\)")
_LINE_START = re.compile(r"^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-*+\u2022][ \t]+)+", re.MULTILINE)
_EMPHASIS = re.compile(r"(?<![\w*])[*_~]{1,3}(?=[\w\"'(])|(?<=[\w.!?,;:\"')\u2026])[*_~]{1,3}(?!\w)|`|\|")
_PICTOGRAMS = re.compile("[\U0001f000-\U0001faff\u2600-\u27bf\u200d\ufe0f]+")


class Sentence(Value, hot=True):
    """Some of a text that is said at once."""

    text: str
    """As it is written, with the blanks that follow."""
    spoken: str
    """What is said; empty if nothing is."""


class Sentences:
    """Takes a text in pieces, and gives its sentences. `least`: shorter ones are said together with the next."""

    def __init__(self, least: int) -> None:
        self._least = least
        self._limit = min(FIRST_CHARS, MAX_CHARS)
        self._held = ""
        self._in_code = False

    def feed(self, piece: str) -> Iterator[Sentence]:
        """The sentences that are complete by now. To be read to the end before the next piece."""
        text = self._held + piece
        begin = 0
        while (end := self._end(text, begin)) is not None:
            yield self._sentence(text[begin:end])
            begin = end
        self._held = text[begin:]

    def rest(self) -> Iterator[Sentence]:
        """That was all: the last one, if there is one."""
        held, self._held = self._held, ""
        if held:
            yield self._sentence(held)

    def _end(self, text: str, begin: int) -> int | None:
        for found in SENTENCE_END.finditer(text, begin, begin + self._limit):
            if len(text[begin : found.end()].strip()) >= self._least and _is_end(text, begin, found):
                return found.end()
        return place(text, begin, self._limit) if len(text) - begin >= self._limit else None

    def _sentence(self, text: str) -> Sentence:
        self._limit = MAX_CHARS
        said = text
        if _FENCE in text or self._in_code:
            said = " ".join(self._outside_code(text))
        return Sentence(text, aloud(said))

    def _outside_code(self, text: str) -> Iterator[str]:
        for number, part in enumerate(text.split(_FENCE)):
            if number:
                self._in_code = not self._in_code
            if not self._in_code:
                yield part


def aloud(text: str) -> str:
    """What is said of a text: without the marks of Markdown, pictograms and line ends; "" without any word in it."""
    text = _PICTURE_OR_LINK.sub(r"\1", text)
    text = _LINE_START.sub("", text)
    text = _EMPHASIS.sub("", text)
    text = " ".join(_PICTOGRAMS.sub(" ", text).split())
    return text if has_words(text) else ""


def _is_end(text: str, begin: int, found: re.Match[str]) -> bool:
    """Whether marks are the end of a sentence, and not part of a word."""
    if found["marks"] != ".":
        return True
    at = found.start()
    before = text[begin:at].rsplit(None, 1)
    word = before[-1].lstrip(_OPENING) if before else ""
    if word.isdecimal():
        # A number at the beginning of a line is that of an item.
        return text[max(begin, text.rfind("\n", begin, at)) : at].strip() != word
    if "." in word or (len(word) == 1 and word.isalpha() and word != "I"):
        return False
    return word.lower() not in _ABBREVIATIONS
