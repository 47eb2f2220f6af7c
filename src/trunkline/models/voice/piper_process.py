"""Piper, as a process of its own: `python -m trunkline.models.voice.piper_process MODEL.onnx THREADS`.

Piper is under the GPL, version 3 or later, and this program under the MIT licence: this module alone uses it, in a
process that nothing else runs in.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from typing import Any

from trunkline.base import jsontext
from trunkline.models.onnx import runtime, session_options
from trunkline.models.voice import child
from trunkline.models.voice.marks import IPA_BEGIN, OWN_BEGIN, PHONEMES_END, Marks, WantedSpeech
from trunkline.models.voice.onnx_output import with_durations
from trunkline.models.voice.speakers import piper_speakers
from trunkline.models.voice.visemes import visemes
from trunkline.models.voice.word_times import assigned, is_phoneme, said_words, word_marks

#: A pause between words that no mouth closes for.
LEAST_PAUSE_SECONDS = 0.06
#: Double brackets hold phonemes, to Piper; to everybody else they are brackets.
_BRACKETS = str.maketrans({IPA_BEGIN: "[[", OWN_BEGIN: "[[", PHONEMES_END: "]]"})


class _Stoppable:
    """An onnxruntime session whose runs can be ended by another thread."""

    def __init__(self, session: Any, fresh: Any) -> None:
        self._session = session
        self._fresh = fresh
        self.options = fresh()

    def renew(self) -> None:
        """Forget that it was stopped."""
        self.options = self._fresh()

    def run(self, outputs: Any, inputs: Any) -> Any:
        return self._session.run(outputs, inputs, self.options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


class Piper:
    """A `Speaker`."""

    def __init__(self, path: str, threads: int) -> None:
        onnxruntime = runtime()
        from piper import PiperVoice
        from piper.config import PiperConfig

        with open(f"{path}.json", "rb") as file:
            described = jsontext.loads(file.read())
        with open(path, "rb") as file:
            model = with_durations(file.read())
        config = PiperConfig.from_dict(described)
        session = onnxruntime.InferenceSession(model, session_options(threads), providers=["CPUExecutionProvider"])
        del model
        self._session = _Stoppable(session, onnxruntime.RunOptions)
        self._voice = PiperVoice(session=self._session, config=config)
        self.voices = piper_speakers(described)
        # Relative to the voice's own pace.
        self._pace = float(config.length_scale)
        self.sample_rate = int(config.sample_rate)
        # The first sentence takes longer than all others: what it needs is loaded with it.
        for _ in self.say(WantedSpeech("Yes.")):
            pass

    def say(self, wanted: WantedSpeech) -> Iterator[bytes | Marks]:
        """One piece of sound per sentence, and its marks before it."""
        self._session.renew()
        return self._sentences(wanted)

    def _sentences(self, wanted: WantedSpeech) -> Iterator[bytes | Marks]:
        from piper import SynthesisConfig

        several = len(self.voices) > 1
        config = SynthesisConfig(
            speaker_id=wanted.speaker if several and wanted.speaker < len(self.voices) else None,
            length_scale=self._pace / wanted.speed,
        )
        text = wanted.text.replace("[[", "[ [").translate(_BRACKETS)
        timeline = _Timeline(self._voice, wanted.text, text, self.sample_rate) if wanted.timings else None
        for chunk in self._voice.synthesize(text, config, include_alignments=wanted.timings):
            sound: bytes = chunk.audio_int16_bytes
            if timeline is not None:
                yield timeline.marks(chunk, len(sound) // 2)
            yield sound

    def stop(self) -> None:
        """End the sentence that is being computed, after the step of the network that it is at."""
        self._session.options.terminate = True


class _Timeline:
    """The marks of a text, sentence by sentence."""

    def __init__(self, voice: Any, text: str, spelled: str, rate: int) -> None:
        self._words = said_words(text)
        alone = [list(chain.from_iterable(voice.phonemize(word))) for word in said_words(spelled)]
        # What ends a sentence is there when a word is spoken by itself, too.
        alone = [list(filter(is_phoneme, word)) for word in alone]
        together = list(chain.from_iterable(voice.phonemize(spelled)))
        self._owners = assigned(alone, together)
        self._pause = int(rate * LEAST_PAUSE_SECONDS)
        self._at = self._samples = self._next = 0

    def marks(self, chunk: Any, size: int) -> Marks:
        """Those of the next sentence, whose sound has so many samples."""
        begin, self._samples = self._samples, self._samples + size
        count = len(chunk.phonemes)
        owners, self._at = self._owners[self._at : self._at + count], self._at + count
        times = _times(chunk, begin, size)
        spoken = times[1 : 1 + count]
        words = word_marks(self._words, owners, spoken, self._next)
        self._next = max(self._next, 1 + max(owners, default=-1))
        phonemes = [(phoneme, *time) for phoneme, time in zip(["", *chunk.phonemes, ""], times, strict=True)]
        return tuple(sorted([*words, *visemes(phonemes, self._pause)], key=lambda mark: mark.start))


def _times(chunk: Any, begin: int, size: int) -> Sequence[tuple[int, int]]:
    """When each phoneme of a sentence begins and ends, with what stands before and after them. Where the network does
    not tell, all are equally long."""
    told = chunk.phoneme_alignments
    lengths = [int(each.num_samples) for each in told] if told is not None else [1] * (len(chunk.phonemes) + 2)
    ends = list(accumulate(lengths))
    total = max(ends[-1], 1)
    # The network may make a little more or less than it says.
    ends = [begin + end * size // total for end in ends]
    return list(zip([begin, *ends], ends, strict=False))


if __name__ == "__main__":
    child.serve(lambda: Piper(sys.argv[1], int(sys.argv[2])))
