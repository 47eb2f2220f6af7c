"""Moonshine on onnxruntime: English, and quick with short sentences. It knows no hotwords.

An encoder turns sound into states, a decoder states into tokens, one at a time; what it has computed for the earlier
ones it gets back with each call.
"""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING, Any

from trunkline.models.installed import no_engine
from trunkline.models.llama_server import default_threads
from trunkline.models.onnx import runtime, session_options
from trunkline.models.voice.decoding import ThreadedRecognizer
from trunkline.models.voice.engines import HEARING_RATE, SpeechError

if TYPE_CHECKING:
    from trunkline.models.voice.sound import Samples

DECODER, TOKENIZER = "decoder_model_merged.ort", "tokenizer.bin"

#: Its cost grows faster than the sound, and it was taught with short sentences.
LONGEST_SECONDS = 20.0
#: It needs a third of the time that the sound takes, or more on a busy machine: partials of more come too late.
SEGMENT_SECONDS = 5.0
#: Shorter sound is followed by silence: the first layers need so much to look at.
SHORTEST_SAMPLES = HEARING_RATE // 4
#: From its makers: nobody says more in a second.
TOKENS_PER_SECOND = 6.5
SPARE_TOKENS = 6

#: The mean logarithm of the tokens' probabilities below which it is guessing.
SENSELESS = -1.2

_BEGIN, _END = 1, 2
#: The size of one piece of the decoder's memory: heads, and numbers of each.
_HEADS, _HEAD_SIZE = 8, 52


class Moonshine(ThreadedRecognizer):
    """A `Recognizer`. `load` makes one."""

    longest_seconds = LONGEST_SECONDS
    segment_seconds = SEGMENT_SECONDS

    def __init__(self, name: str, encoder: Any, decoder: Any, words: list[bytes]) -> None:
        super().__init__(name)
        self._encoder = encoder
        self._decoder = decoder
        self._words = words
        self._memory = [each.name for each in decoder.get_inputs() if each.name.startswith("past_key_values.")]
        self._outputs = [each.name for each in decoder.get_outputs()]

    @classmethod
    async def load(cls, name: str, path: str, *, threads: int | None = None) -> Moonshine:
        """Load a model from the file of its encoder; the others are beside it.

        Raises:
            SpeechError: it cannot be loaded.
        """
        loaded = cls(name, *await asyncio.to_thread(_load, path, threads or default_threads()))
        await loaded.warm_up()
        return loaded

    def decode(self, sound: Samples, hotwords: tuple[str, ...], given_up: threading.Event) -> str:
        """The words in a sound. Hotwords have no effect."""
        import numpy as np

        sound = np.pad(sound, (0, max(0, SHORTEST_SAMPLES - len(sound))))
        (states,) = self._encoder.run(None, {"input_values": sound[None]})
        empty = np.zeros((1, _HEADS, 0, _HEAD_SIZE), np.float32)
        given: dict[str, Any] = {
            "encoder_hidden_states": states,
            "input_ids": np.array([[_BEGIN]], np.int64),
            "use_cache_branch": np.array([False]),
            **dict.fromkeys(self._memory, empty),
        }
        tokens: list[int] = []
        sure = 0.0
        for _ in range(SPARE_TOKENS + int(TOKENS_PER_SECOND * len(sound) / HEARING_RATE)):
            if given_up.is_set():
                return ""
            found = dict(zip(self._outputs, self._decoder.run(None, given), strict=True))
            scores = found["logits"][0, -1]
            token = int(np.argmax(scores))
            sure -= float(np.log(np.exp(scores - scores[token]).sum()))
            if token == _END:
                break
            tokens.append(token)
            self._remember(given, found)
            given["input_ids"] = np.array([[token]], np.int64)
        return self._text(tokens) if sure / (len(tokens) + 1) > SENSELESS else ""

    def _remember(self, given: dict[str, Any], found: dict[str, Any]) -> None:
        first = not given["use_cache_branch"][0]
        for name in self._memory:
            # What it knows of the sound is told once, and stays.
            if first or ".decoder." in name:
                given[name] = found[name.replace("past_key_values", "present")]
        if first:
            given["use_cache_branch"][0] = True

    def _text(self, tokens: list[int]) -> str:
        joined = b"".join(self._words[token] for token in tokens if token < len(self._words))
        return joined.decode("utf-8", "replace").replace("\u2581", " ")

    def free(self) -> None:
        """Let go of the model."""
        self._encoder = self._decoder = None


def _load(path: str, threads: int) -> tuple[Any, Any, list[bytes]]:
    try:
        onnxruntime = runtime()
    except ImportError:
        raise SpeechError(no_engine("voice")) from None
    options = session_options(threads)
    # Every sound has its own length. What is kept for the next one of the same length would be gigabytes in the end:
    # nothing by the encoder, which runs once; no plans by the decoder, which without an arena is three times as slow.
    options.enable_mem_pattern = False
    options.enable_cpu_mem_arena = False
    folder = os.path.dirname(path)
    providers = ["CPUExecutionProvider"]
    try:
        with open(os.path.join(folder, TOKENIZER), "rb") as file:
            words = read_words(file.read())
        encoder = onnxruntime.InferenceSession(path, options, providers=providers)
        options.enable_cpu_mem_arena = True
        decoder = onnxruntime.InferenceSession(os.path.join(folder, DECODER), options, providers=providers)
    except Exception as error:  # each library has its own kinds
        raise SpeechError(f"`{os.path.basename(path)}` cannot be loaded ({type(error).__name__}).") from None
    return encoder, decoder, words


def read_words(data: bytes) -> list[bytes]:
    """The words of the tokens: each with its length before it, in one byte, or from 128 on in two.

    Raises:
        ValueError: it is cut off.
    """
    words: list[bytes] = []
    place = 0
    while place < len(data):
        length = data[place]
        place += 1
        if length >= 128:
            if place == len(data):
                raise ValueError("a word without its length")
            length += data[place] * 128 - 128
            place += 1
        if place + length > len(data):
            raise ValueError("a word that is cut off")
        words.append(data[place : place + length])
        place += length
    return words
