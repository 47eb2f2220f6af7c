"""What hears and speaks for one session of a server.

    voices = VoicePool(pool)
    recognizer = await voices.recognizer("whisper-base", InferenceEngine.SHERPA_ONNX)
    voice = await voices.voice("", InferenceEngine.SHERPA_ONNX)

The models are the pool's: it loads each once, lists it as loaded, and closes it in the end. One that was used stays
loaded until it is unloaded by its name, since to load it takes as long as a sentence; and it is in use as long as
somebody holds what this gave.

A session has one thing said at a time, one written down, and one searched for speech: the next when that is read to its
end. Engines serve who comes first, so that sessions take turns at them, however much one of them has to say; and a
client that does not read has the sound of one piece of text wait for it, and not that of a thousand agents.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from trunkline.agents.graph.hearing.threads import DetectionThreads
from trunkline.core.faults import ModelError, NoRecognizer, NoVoice
from trunkline.core.graph.ordinals import InferenceEngine
from trunkline.models.catalog_entry import HEARS, SPEAKS
from trunkline.models.voice.detect import make_detector

if TYPE_CHECKING:
    from trunkline.models.voice.engines import Detector, Recognizer, Voice
    from trunkline.models.voice.marks import Marks, WantedSpeech

T = TypeVar("T")


class SpeechModels(Protocol):
    """Where the models are; `pool.ModelPool` is one."""

    def named(self, kind: str) -> tuple[str, ...]: ...

    def is_here(self, name: str) -> bool: ...

    async def speech(self, name: str, kind: str, missing: type[ModelError]) -> tuple[Any, Callable[[], None]]: ...


class VoicePool:
    """All that hears and speaks. `engine` is an `InferenceEngine`; `SHERPA_ONNX` means the real one, whatever it is."""

    def __init__(self, models: SpeechModels) -> None:
        self.detection = DetectionThreads()
        self._models = models
        self._hearing, self._speaking = asyncio.Lock(), asyncio.Lock()

    async def recognizer(self, name: str, engine: int) -> Recognizer:
        """A model that hears. For the real engine: the Mock one needs none.

        Raises:
            NoRecognizer: there is none of that name, it is no model that hears, or it cannot be used.
        """
        if engine != InferenceEngine.SHERPA_ONNX:
            raise NoRecognizer(f"The engine asked for has no speech recognition model `{name}`.")
        loaded, end = await self._models.speech(name, HEARS, NoRecognizer)
        return _lent(_RecognizerLease(loaded, self._hearing), end)

    async def voice(
        self, name: str, engine: int, fetched: Callable[[str], Awaitable[None]] | None = None
    ) -> Voice | None:
        """A model that speaks; the first of the catalog that is here for no name, and None for the Mock engine.

        `fetched` sees to it that one is here, if that is wanted.

        Raises:
            NoVoice: there is none of that name, it is no model that speaks, or it cannot be used.
        """
        if engine == InferenceEngine.MOCK:
            return None
        if engine != InferenceEngine.SHERPA_ONNX:
            raise NoVoice(f"The engine asked for has no voice `{name}`.")
        name = name or self.first_voice()
        if fetched is not None:
            await fetched(name)
        loaded, end = await self._models.speech(name, SPEAKS, NoVoice)
        return _lent(_VoiceLease(loaded, self._speaking), end)

    def first_voice(self) -> str:
        """The name of the first voice of the catalog that is here, or of the first, if none is."""
        voices = self._models.named(SPEAKS)
        return next(filter(self._models.is_here, voices), voices[0] if voices else "")

    def detector(self, threshold: float) -> Detector:
        """A detector of speech for one stream of sound. May be called in any thread."""
        return make_detector(threshold)


def _lent(lease: T, end: Callable[[], None]) -> T:
    weakref.finalize(lease, end).atexit = False
    return lease


class _RecognizerLease:
    """A recognizer, lent for as long as somebody holds this."""

    def __init__(self, engine: Recognizer, turn: asyncio.Lock) -> None:
        self.name = engine.name
        self.segment_seconds = engine.segment_seconds
        self._engine = engine
        self._turn = turn

    async def transcribe(self, pcm: bytes, *, hotwords: Sequence[str] = ()) -> str:
        async with self._turn:
            return await self._engine.transcribe(pcm, hotwords=hotwords)

    async def close(self) -> None:
        """It is not the borrower's to close."""


class _VoiceLease:
    """A voice, lent for as long as somebody holds this."""

    def __init__(self, engine: Voice, turn: asyncio.Lock) -> None:
        self.name = engine.name
        self.sample_rate = engine.sample_rate
        self.voices = engine.voices
        self._engine = engine
        self._turn = turn

    async def say(self, wanted: WantedSpeech) -> AsyncGenerator[bytes | Marks, None]:
        # Through here, as `speak`.
        async with self._turn, aclosing(self._engine.say(wanted)) as sound:
            async for piece in sound:
                yield piece

    async def speak(self, text: str, *, speaker: int = 0, speed: float = 1.0) -> AsyncGenerator[bytes, None]:
        # Through here, so that this is held as long as the sound is listened to.
        async with self._turn, aclosing(self._engine.speak(text, speaker=speaker, speed=speed)) as sound:
            async for piece in sound:
                yield piece

    async def close(self) -> None:
        """It is not the borrower's to close."""
