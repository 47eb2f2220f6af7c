"""Whisper on CTranslate2: English, with hotwords.

The model was made for half a minute at a time, and looks at half a minute of silence as long as at half a minute of
words. It is shown the sound and some seconds of silence, no more: a short sentence is so understood in a third of the
time, with the same words.
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
from typing import TYPE_CHECKING, Any

from trunkline.models.installed import no_engine
from trunkline.models.llama_server import default_threads
from trunkline.models.voice import mel
from trunkline.models.voice.decoding import ThreadedRecognizer
from trunkline.models.voice.engines import HEARING_RATE, SpeechError
from trunkline.models.voice.whisper_words import FILE, WhisperTokens

if TYPE_CHECKING:
    from trunkline.models.voice.sound import Samples

#: Columns of the picture: the model's most; the fewest that leave its words as they are; the silence that tells it that
#: a sentence is over.
MOST_COLUMNS, FEWEST_COLUMNS, SILENT_COLUMNS = 3000, 1000, 200
#: What fits into the picture with the silence behind it.
LONGEST_SECONDS = 28.0
#: Half of that is written down in a second, and takes 60 MiB.
SEGMENT_SECONDS = 15.0
#: What the model can have in mind, prompt and answer together.
MAX_TOKENS = 448
#: Tokens that hotwords may take: half of that.
MAX_HOTWORD_TOKENS = 223
#: Nobody says more in a second. A model that runs in circles is stopped.
TOKENS_PER_SECOND = 12
SPARE_TOKENS = 16

#: It says itself how sure it is that nobody spoke, and of the words it found (as the mean logarithm of their
#: probabilities). Noise is put into words with a mean below -1.6, mumbled names have one of -0.6.
NO_SPEECH, UNSURE, SENSELESS = 0.5, -1.0, -1.5
#: When it runs in circles it is asked again, and may then use no sequence of so many tokens twice.
DISTINCT_TOKENS = 4

_WORD = re.compile(r"\w+")
#: Those of a long token.
_MOST_CHARACTERS = 16


class Whisper(ThreadedRecognizer):
    """A `Recognizer`. `load` makes one."""

    longest_seconds = LONGEST_SECONDS
    segment_seconds = SEGMENT_SECONDS

    def __init__(self, name: str, model: Any, words: WhisperTokens) -> None:
        super().__init__(name)
        self._model = model
        self._words = words
        self._before = words.mark("<|startofprev|>")
        wanted = ("<|startoftranscript|>", "<|en|>", "<|transcribe|>", "<|notimestamps|>")
        self._begin = [words.mark(each) for each in wanted]

    @classmethod
    async def load(cls, name: str, path: str, *, threads: int | None = None) -> Whisper:
        """Load a model from its file; the others are beside it.

        Raises:
            SpeechError: it cannot be loaded.
        """
        loaded = cls(name, *await asyncio.to_thread(_load, path, threads or default_threads()))
        await loaded.warm_up()
        return loaded

    def decode(self, sound: Samples, hotwords: tuple[str, ...], given_up: threading.Event) -> str:
        """The words in a sound."""
        import ctranslate2  # type: ignore[import-untyped]  # it has no stubs
        import numpy as np

        length = len(sound) // mel.STEP
        columns = min(max(length + SILENT_COLUMNS, FEWEST_COLUMNS), MOST_COLUMNS)
        picture = mel.picture(sound, columns)
        shown = self._model.encode(ctranslate2.StorageView.from_array(np.ascontiguousarray(picture[None])))
        if given_up.is_set():
            return ""
        prompt = [*self._hotwords(hotwords), *self._begin]
        most = min(SPARE_TOKENS + TOKENS_PER_SECOND * len(sound) // HEARING_RATE, MAX_TOKENS - len(prompt))
        found = self._generate(shown, prompt, most)
        if len(found.sequences_ids[0]) >= most:
            if given_up.is_set():
                return ""
            found = self._generate(shown, prompt, most, no_repeat_ngram_size=DISTINCT_TOKENS)
            if len(found.sequences_ids[0]) >= most:
                return ""
        text = self._words.text(found.sequences_ids[0])
        sure = found.scores[0]
        silent = found.no_speech_prob > NO_SPEECH
        if sure < SENSELESS or (silent and (sure < UNSURE or _is_echo(text, hotwords))):
            return ""
        return text

    def _generate(self, shown: Any, prompt: list[int], most: int, **options: Any) -> Any:
        (found,) = self._model.generate(
            shown,
            [prompt],
            beam_size=1,
            max_length=len(prompt) + most,
            return_scores=True,
            return_no_speech_prob=True,
            **options,
        )
        return found

    def _hotwords(self, hotwords: tuple[str, ...]) -> list[int]:
        """What makes the model expect some words: it is told that they were said just before."""
        listed = ", ".join(filter(None, (word.strip() for word in hotwords)))
        if not listed:
            return []
        # No more of a thousand words than can be told.
        tokens = self._words.tokens(f" {listed}"[: MAX_HOTWORD_TOKENS * _MOST_CHARACTERS])
        return [self._before, *tokens[:MAX_HOTWORD_TOKENS]]

    def free(self) -> None:
        """Let go of the model."""
        self._model = None


def _is_echo(text: str, hotwords: tuple[str, ...]) -> bool:
    """Whether a text has nothing in it but hotwords: where nobody speaks, the model says what it was told."""
    told = set(_WORD.findall(" ".join(hotwords).lower()))
    return bool(told) and told.issuperset(_WORD.findall(text.lower()))


def _load(path: str, threads: int) -> tuple[Any, WhisperTokens]:
    try:
        import ctranslate2
    except ImportError:
        raise SpeechError(no_engine("voice")) from None
    folder = os.path.dirname(path)
    try:
        words = WhisperTokens.read(os.path.join(folder, FILE))
        model = ctranslate2.models.Whisper(folder, device="cpu", compute_type="int8", intra_threads=threads)
    except Exception as error:  # each library has its own kinds
        raise SpeechError(f"`{os.path.basename(path)}` cannot be loaded ({type(error).__name__}).") from None
    return model, words
