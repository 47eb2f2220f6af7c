"""The marks of what eSpeak NG says, out of the events that it tells on its way."""

from __future__ import annotations

from collections.abc import Sequence

from trunkline.base.values import Value
from trunkline.models.voice.marks import Marks
from trunkline.models.voice.visemes import visemes
from trunkline.models.voice.word_times import is_said, word_marks

# From `speak_lib.h`.
EVENT_WORD, EVENT_END, EVENT_PHONEME = 1, 5, 7

#: A pause that no mouth closes for.
LEAST_PAUSE_SECONDS = 0.06


class Happening(Value, hot=True):
    """One event."""

    type: int
    position: int
    """In the text, counted from 1."""
    sample: int
    phoneme: str


def marks(words: Sequence[str], text: str, happened: Sequence[Happening], size: int, rate: int) -> Marks:
    """The marks of a text that has these words between blanks, however they are spelled in what was said."""
    spans = _spans(text)
    owners = [place for place, word in enumerate(words) if is_said(word)]
    number = {place: order for order, place in enumerate(owners)}
    begun: list[tuple[int, int]] = []
    for each in happened:
        if each.type == EVENT_WORD:
            place = next((at for at, (_, end) in enumerate(spans) if each.position <= end), -1)
            if place in number and (not begun or number[place] > begun[-1][0]):
                begun.append((number[place], each.sample))
    quiet = [each.sample for each in happened if _is_quiet(each)]
    times = []
    for at, (_, start) in enumerate(begun):
        until = begun[at + 1][1] if at + 1 < len(begun) else size
        times.append((start, next((sample for sample in quiet if start < sample < until), until)))
    said = word_marks([words[place] for place in owners], [order for order, _ in begun], times)
    phonemes = [each for each in happened if each.type == EVENT_PHONEME]
    ends = [*(each.sample for each in phonemes[1:]), size][: len(phonemes)]
    shown = visemes(
        [("", 0, phonemes[0].sample if phonemes else size)]
        + [(each.phoneme, each.sample, end) for each, end in zip(phonemes, ends, strict=True)],
        int(rate * LEAST_PAUSE_SECONDS),
    )
    return tuple(sorted([*said, *shown], key=lambda mark: mark.start))


def _is_quiet(event: Happening) -> bool:
    return event.type == EVENT_END or (event.type == EVENT_PHONEME and not event.phoneme)


def _spans(text: str) -> list[tuple[int, int]]:
    """Where what stands between blanks begins and ends."""
    spans, at = [], 0
    for word in text.split():
        begin = text.index(word, at)
        at = begin + len(word)
        spans.append((begin, at))
    return spans
