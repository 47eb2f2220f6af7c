"""Which of a text's words is said when, for an engine that only knows its phonemes.

The words of a text, each spoken by itself, are laid beside what the engine makes of all of them together: it may join
two, or say one in another way before the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from trunkline.models.voice.marks import WORD, SpokenMark


def is_said(word: str) -> bool:
    """Whether what stands between blanks has a letter or a figure in it."""
    return any(letter.isalnum() for letter in word)


def said_words(text: str) -> list[str]:
    """The words of a text that are said."""
    return list(filter(is_said, text.split()))


def is_phoneme(sign: str) -> bool:
    """Whether it is spoken, and no mark between words."""
    return sign.isalnum() or not sign.isascii()


def assigned(alone: Sequence[Sequence[str]], together: Sequence[str], blank: str = " ") -> list[int]:
    """For each phoneme of a text the place of the word that it belongs to; -1 for what is between words.

    `alone`: the phonemes of each word by itself. What is a blank separates words.
    """
    letters = [phoneme for word in alone for phoneme in word]
    owners = [place for place, word in enumerate(alone) for _ in word]
    spoken = [at for at, phoneme in enumerate(together) if phoneme != blank and is_phoneme(phoneme)]
    matcher = SequenceMatcher(None, letters, [together[at] for at in spoken], autojunk=False)
    found = [-1] * len(together)
    for block in matcher.get_matching_blocks():
        for step in range(block.size):
            found[spoken[block.b + step]] = owners[block.a + step]
    return _filled(found, [phoneme == blank for phoneme in together], set(spoken))


def _filled(found: list[int], blanks: list[bool], spoken: set[int]) -> list[int]:
    """Give phonemes that were said otherwise than alone to their neighbours in the same run between blanks; a run that
    has none, to the word that follows the last one."""
    last = -1
    begin = 0
    for at in range(len(found) + 1):
        if at < len(found) and not blanks[at]:
            continue
        run = [place for place in range(begin, at) if place in spoken]
        begin = at + 1
        if not run:
            continue
        known = [found[place] for place in run if found[place] >= 0]
        current = known[0] if known else last + 1
        for place in run:
            current = found[place] = max(found[place], current) if found[place] >= 0 else current
        last = max(last, found[run[-1]])
    return found


def word_marks(
    words: Sequence[str], owners: Sequence[int], times: Sequence[tuple[int, int]], first: int = 0
) -> list[SpokenMark]:
    """The marks of the words that phonemes with these times belong to, and of those before them, from the word `first`.

    A word that has no phoneme of its own, because it was joined to the one before it, has a part of its time.
    """
    spans: dict[int, tuple[int, int]] = {}
    for owner, (start, end) in zip(owners, times, strict=True):
        if first <= owner < len(words):
            begin, until = spans.get(owner, (start, end))
            spans[owner] = min(begin, start), max(until, end)
    marks: list[SpokenMark] = []
    places = sorted(spans)
    for number, place in enumerate(places):
        following = places[number + 1] if number + 1 < len(places) else place + 1
        marks += _shared(words[place if number else first : following], *spans[place])
    return marks


def _shared(words: Sequence[str], start: int, end: int) -> list[SpokenMark]:
    """Words that share a time, by their lengths."""
    total = sum(map(len, words))
    marks, done = [], 0
    for word in words:
        begin = start + (end - start) * done // total
        done += len(word)
        marks.append(SpokenMark(WORD, word, begin, start + (end - start) * done // total))
    return marks
