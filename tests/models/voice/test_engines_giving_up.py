"""A decoding that is given up ends before it is done; the engines' libraries are not here."""

from __future__ import annotations

import sys
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from trunkline.models.voice.engines import HEARING_RATE
from trunkline.models.voice.moonshine import Moonshine
from trunkline.models.voice.whisper import Whisper
from trunkline.models.voice.whisper_words import WhisperTokens

SECOND = np.zeros(HEARING_RATE, np.float32)
#: One that never ends a sentence.
TOKEN = 5
MARKS = WhisperTokens(
    ["<|endoftext|>", "<|startofprev|>", "<|startoftranscript|>", "<|en|>", "<|transcribe|>", "<|notimestamps|>"]
)


class Engine:
    """Both halves of a model. It is given up in the middle of the call of a number."""

    def __init__(self, last_call: int) -> None:
        self.given_up = threading.Event()
        self.calls: list[str] = []
        self._last_call = last_call

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if len(self.calls) == self._last_call:
            self.given_up.set()

    # Moonshine's decoder; its encoder is `Encoder`.

    def get_inputs(self) -> list[Any]:
        return []

    def get_outputs(self) -> list[Any]:
        return [SimpleNamespace(name="logits")]

    def run(self, names: None, given: dict[str, Any]) -> list[Any]:
        self._call("token")
        return [np.eye(1, TOKEN + 1, TOKEN, dtype=np.float32)[None]]

    # Whisper's model.

    def encode(self, shown: object) -> object:
        self._call("encode")
        return shown

    def generate(self, shown: object, prompts: list[list[int]], *, max_length: int, **options: Any) -> list[Any]:
        self._call("generate")
        endless = [TOKEN] * (max_length - len(prompts[0]))
        return [SimpleNamespace(sequences_ids=[endless], scores=[0.0], no_speech_prob=0.0)]


class Encoder:
    def run(self, names: None, given: dict[str, Any]) -> list[Any]:
        return [np.zeros((1, 1, 1), np.float32)]


def test_moonshine_stops_at_the_next_token() -> None:
    engine = Engine(last_call=3)
    moonshine = Moonshine("moonshine", Encoder(), engine, [b"a"] * (TOKEN + 1))
    assert moonshine.decode(SECOND, (), engine.given_up) == ""
    assert engine.calls == ["token"] * 3


@pytest.mark.parametrize(
    ("last_call", "calls"), [(1, ["encode"]), (2, ["encode", "generate"]), (9, ["encode", "generate", "generate"])]
)
def test_whisper_stops_between_its_steps(last_call: int, calls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    library = SimpleNamespace(StorageView=SimpleNamespace(from_array=lambda array: array))
    monkeypatch.setitem(sys.modules, "ctranslate2", library)
    engine = Engine(last_call)
    assert Whisper("whisper", engine, MARKS).decode(SECOND, (), engine.given_up) == ""
    assert engine.calls == calls
