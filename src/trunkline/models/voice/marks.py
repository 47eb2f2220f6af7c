"""What a voice is asked to say, and what it tells of when it says it."""

from __future__ import annotations

from typing import Final

from trunkline.base.values import Value
from trunkline.core.graph.ordinals import TtsMarkKind

#: Around phonemes in a text: those of the International Phonetic Alphabet, and those of an engine's own writing. No
#: text of anybody else's has these characters: see `without_phonemes`.
IPA_BEGIN: Final = "\ue000"
OWN_BEGIN: Final = "\ue001"
PHONEMES_END: Final = "\ue002"
_NONE = dict.fromkeys(map(ord, (IPA_BEGIN, OWN_BEGIN, PHONEMES_END)))

WORD: Final = TtsMarkKind.WORD
VISEME: Final = TtsMarkKind.VISEME


class SpokenMark(Value, hot=True):
    """A word, as it stands in the text between blanks, or what the mouth shows. Times are samples, and count from the
    beginning of the text's sound."""

    kind: int
    text: str
    start: int
    end: int


#: Those of some sound, in order of their beginnings. They come before it.
Marks = tuple[SpokenMark, ...]


class WantedSpeech(Value):
    """A text that may have phonemes in it, and how it is to be said."""

    text: str
    speaker: int = 0
    speed: float = 1.0
    timings: bool = False
    """Whether marks are wanted."""


def without_phonemes(text: str) -> str:
    """A text of somebody else's, in which everything is a letter."""
    return text.translate(_NONE)
