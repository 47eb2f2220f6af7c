"""A voice that nobody hears, and that tells all the same when it would say what: for the engine Mock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from trunkline.models.voice.marks import WORD, Marks, SpokenMark, WantedSpeech
from trunkline.models.voice.visemes import visemes
from trunkline.models.voice.word_times import said_words

#: Marks are told in thousandths of a second.
RATE = 1000
#: What each letter takes at the usual speed, and the pause behind each word.
LETTER_MS, PAUSE_MS = 60, 80
#: What the mouth shows for a letter, as phonemes: what it sounds like in most languages.
_LETTERS = {"c": "k", "q": "k", "x": "s", "y": "j", "j": "dʒ"}


class SilentVoice:
    """A `Voice` of any number of speakers. The same text always has the same marks."""

    name = "mock"
    sample_rate = RATE
    voices: tuple[str, ...] = ()

    async def speak(self, text: str, *, speaker: int = 0, speed: float = 1.0) -> AsyncGenerator[bytes, None]:
        """No sound."""
        await asyncio.sleep(0)
        nothing: tuple[bytes, ...] = ()
        for piece in nothing:
            yield piece

    async def say(self, wanted: WantedSpeech) -> AsyncGenerator[bytes | Marks, None]:
        """The marks of a text, if they are wanted: each letter of a word takes as long, and has its viseme."""
        await asyncio.sleep(0)
        if wanted.timings and (marks := _marks(wanted)):
            yield marks

    async def close(self) -> None:
        """There is nothing to let go of."""


def _marks(wanted: WantedSpeech) -> Marks:
    words: list[SpokenMark] = []
    sounds: list[tuple[str, int, int]] = []
    at = 0.0
    for word in said_words(wanted.text):
        begin = round(at)
        for letter in filter(str.isalnum, word.lower()):
            start, at = round(at), at + LETTER_MS / wanted.speed
            sounds.append((_LETTERS.get(letter, letter), start, round(at)))
        words.append(SpokenMark(WORD, word, begin, round(at)))
        start, at = round(at), at + PAUSE_MS / wanted.speed
        sounds.append(("", start, round(at)))
    return tuple(sorted([*words, *visemes(sounds, 1)], key=lambda mark: mark.start))
