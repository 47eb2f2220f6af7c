"""A voice input: what one microphone of a session is listened to with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

from trunkline.agents.graph.hearing.mock import MockUtterance
from trunkline.agents.graph.hearing.pcm import PcmFormat, ready
from trunkline.agents.graph.hearing.real import Ears, RealUtterance, sane_threshold
from trunkline.agents.graph.hearing.threads import DetectionThreads
from trunkline.agents.graph.hearing.utterance import ListeningOptions, Utterance
from trunkline.agents.graph.storages import KIND_NAMES, StringStorage
from trunkline.core.faults import NotListening, WrongStorage
from trunkline.core.graph.hosting import VoiceInputDescription
from trunkline.core.graph.ordinals import InferenceEngine, StringStorageKind
from trunkline.core.graph.turns import TranscriptListener
from trunkline.models.voice.engines import Detector, Recognizer

#: Words beyond this are not looked for: no recognizer remembers so many.
MAX_HOTWORDS = 1000
#: A score up to this means that no word is preferred.
_INDIFFERENT = 1.0

Listen = Callable[[ListeningOptions, TranscriptListener], Utterance]


class Hearing(Protocol):
    """Where engines come from; `voices.VoicePool` is one. `engine` is an `InferenceEngine`."""

    @property
    def detection(self) -> DetectionThreads:
        """Where the session detects speech."""

    async def recognizer(self, name: str, engine: int) -> Recognizer:
        """The recognizer of a model, loaded.

        Raises:
            NoRecognizer: there is none, or it is no model that hears; or it could not be fetched.
        """

    def detector(self, threshold: float) -> Detector:
        """A detector for one utterance. May be called in any thread."""


class HostedVoiceInput:
    """A `HostedVoice`."""

    def __init__(self, format: PcmFormat, min_silence_ms: int, listen: Listen) -> None:
        self._format = format
        self._min_silence_ms = min_silence_ms
        self._listen: Listen | None = listen

    def begin(self, listener: TranscriptListener, *, hands_free: bool, max_ms: int) -> Utterance:
        """Hear an utterance; see `HostedVoice`."""
        if self._listen is None:
            raise NotListening("The session has no such voice input.")
        return self._listen(ListeningOptions(self._format, self._min_silence_ms, hands_free, max_ms), listener)

    def close(self) -> None:
        """Let go of the engines."""
        self._listen = None


async def open_voice(
    described: VoiceInputDescription,
    engine: int,
    *,
    strings: Callable[[str], Awaitable[StringStorage]],
    fetched: Callable[[str], Awaitable[None]],
    hearing: Hearing,
) -> HostedVoiceInput:
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
    format = PcmFormat(described.sample_rate, described.channels, described.bits_per_sample)
    format.check()
    hotwords = await _hotwords(described, strings)
    await ready()
    if engine == InferenceEngine.MOCK:
        return HostedVoiceInput(format, described.vad_min_silence_ms, MockUtterance)
    threshold = sane_threshold(described.vad_threshold)
    await fetched(described.model_name)
    ears = Ears(
        await hearing.recognizer(described.model_name, engine),
        partial(hearing.detector, threshold),
        hearing.detection,
        threshold=threshold,
        pad_ms=described.vad_speech_pad_ms,
        hotwords=hotwords,
    )
    return HostedVoiceInput(format, described.vad_min_silence_ms, partial(RealUtterance, ears))


async def _hotwords(
    described: VoiceInputDescription, strings: Callable[[str], Awaitable[StringStorage]]
) -> tuple[str, ...]:
    path = described.hotwords_storage_path
    if not path:
        return ()
    found = await strings(path)
    if found.kind != StringStorageKind.LIST:
        raise WrongStorage(f"Hotwords are a List, and `{path}` is a {KIND_NAMES[found.kind]}.")
    return found.lines[:MAX_HOTWORDS] if described.hotwords_score > _INDIFFERENT else ()
