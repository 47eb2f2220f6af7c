"""A voice input: what one microphone of a session is listened to with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

from trunkline.agents.graph.hearing.mock import MockUtterance
from trunkline.agents.graph.hearing.pcm import Format, ready
from trunkline.agents.graph.hearing.real import Ears, RealUtterance, sane_threshold
from trunkline.agents.graph.hearing.turns import Turns
from trunkline.agents.graph.hearing.utterance import Manner, Utterance
from trunkline.agents.graph.storages import KIND_NAMES, StringStorage
from trunkline.core.faults import NotListening, WrongStorage
from trunkline.models.voice.engines import Detector, Recognizer
from trunkline.wires.tryll.host import TranscriptListener
from trunkline.wires.tryll.messages import (
    BeginUtteranceRequest,
    CreateVoiceInputRequest,
    InferenceEngine,
    StringStorageKind,
)

#: Words beyond this are not looked for: no recognizer remembers so many.
MAX_HOTWORDS = 1000
#: A score up to this means that no word is preferred.
_INDIFFERENT = 1.0

Listen = Callable[[Manner, TranscriptListener], Utterance]


class Hearing(Protocol):
    """Where engines come from; `voices.VoicePool` is one. `engine` is an `InferenceEngine`."""

    @property
    def turns(self) -> Turns:
        """The session's turns at detecting speech."""

    async def recognizer(self, name: str, engine: int) -> Recognizer:
        """The recognizer of a model, loaded.

        Raises:
            NoRecognizer: there is none, or it is no model that hears; or it could not be fetched.
        """

    def detector(self, threshold: float) -> Detector:
        """A detector for one utterance. May be called in any thread."""


class VoiceInput:
    """A `HostedVoice`."""

    def __init__(self, format: Format, min_silence_ms: int, listen: Listen) -> None:
        self._format = format
        self._min_silence_ms = min_silence_ms
        self._listen: Listen | None = listen

    def begin(self, request: BeginUtteranceRequest, listener: TranscriptListener) -> Utterance:
        """Hear an utterance; see `HostedVoice`."""
        if self._listen is None:
            raise NotListening("The session has no such voice input.")
        hands_free, limit = request.auto_finish_on_silence, request.max_utterance_ms
        return self._listen(Manner(self._format, self._min_silence_ms, hands_free, limit), listener)

    def close(self) -> None:
        """Let go of the engines."""
        self._listen = None


async def open_voice(
    request: CreateVoiceInputRequest,
    engine: int,
    *,
    strings: Callable[[str], Awaitable[StringStorage]],
    fetched: Callable[[str], Awaitable[None]],
    hearing: Hearing,
) -> VoiceInput:
    """Make a voice input.

    Args:
        engine: which kind of engine is to hear; an `InferenceEngine`.
        strings: storages by their path or name, for the words that are to be listened for.
        fetched: sees to it that a model is here, if that is wanted.

    Raises:
        BadAudio: the format.
        StorageError: the words.
        ModelError: the model.
    """
    format = Format(request.sample_rate, request.channels, request.bits_per_sample)
    format.check()
    hotwords = await _hotwords(request, strings)
    await ready()
    if engine == InferenceEngine.MOCK:
        return VoiceInput(format, request.vad_min_silence_ms, MockUtterance)
    threshold = sane_threshold(request.vad_threshold)
    await fetched(request.model_name)
    ears = Ears(
        await hearing.recognizer(request.model_name, engine),
        partial(hearing.detector, threshold),
        hearing.turns,
        threshold=threshold,
        pad_ms=request.vad_speech_pad_ms,
        hotwords=hotwords,
    )
    return VoiceInput(format, request.vad_min_silence_ms, partial(RealUtterance, ears))


async def _hotwords(
    request: CreateVoiceInputRequest, strings: Callable[[str], Awaitable[StringStorage]]
) -> tuple[str, ...]:
    path = request.hotwords_storage_path
    if not path:
        return ()
    found = await strings(path)
    if found.kind != StringStorageKind.LIST:
        raise WrongStorage(f"Hotwords are a List, and `{path}` is a {KIND_NAMES[found.kind]}.")
    return found.lines[:MAX_HOTWORDS] if request.hotwords_score > _INDIFFERENT else ()
