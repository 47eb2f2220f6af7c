"""What all recognizers have in common: a thread of their own, a queue, and an ear for silence."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from trunkline.models.load_options import ON_CPU
from trunkline.models.voice.detect import has_speech
from trunkline.models.voice.engines import HEARING_RATE, SpeechError
from trunkline.models.voice.sound import SAMPLE_BYTES, pieces, samples

if TYPE_CHECKING:
    from trunkline.models.voice.sound import Samples


class ThreadedRecognizer(ABC):
    """A `Recognizer` that decodes in a thread, one sound after the other."""

    #: What the model takes at once. Longer sound is cut at quiet places.
    longest_seconds: float
    #: See `Recognizer`.
    segment_seconds: float
    used = ON_CPU

    def __init__(self, name: str) -> None:
        self.name = name
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"hear-{name}")
        self._closed = False

    async def transcribe(self, pcm: bytes, *, hotwords: Sequence[str] = ()) -> str:
        """The words in a piece of sound; see `Recognizer`."""
        if self._closed:
            raise self._unloaded()
        given_up = threading.Event()
        work = asyncio.get_running_loop().run_in_executor(
            self._thread, self._transcribed, pcm, tuple(hotwords), given_up
        )
        try:
            return await work
        except asyncio.CancelledError:
            given_up.set()
            raise
        except SpeechError:
            raise
        except Exception as error:  # each library has its own kinds
            raise SpeechError(f"The model `{self.name}` failed ({type(error).__name__}).") from error

    def _transcribed(self, pcm: bytes, hotwords: tuple[str, ...], given_up: threading.Event) -> str:
        if self._closed:
            # It waited for its turn until then.
            raise self._unloaded()
        if not has_speech(pcm):
            return ""
        heard: list[str] = []
        for piece in pieces(samples(pcm), self.longest_seconds):
            if given_up.is_set():
                break
            heard.append(self.decode(piece, hotwords, given_up).strip())
        return " ".join(filter(None, heard))

    async def warm_up(self) -> None:
        """Have the engine take the memory that it takes when it is first used, so that no utterance costs it.

        Raises:
            SpeechError: it does not work.
        """
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._try)
        except BaseException as error:
            self._closed = True
            self._thread.shutdown(wait=False)
            if not isinstance(error, Exception):
                raise
            raise SpeechError(f"The model `{self.name}` does not work ({type(error).__name__}).") from error

    def _try(self) -> None:
        pcm = bytes(int(self.segment_seconds * HEARING_RATE) * SAMPLE_BYTES)
        has_speech(pcm[: HEARING_RATE * SAMPLE_BYTES])
        self.decode(samples(pcm), (), threading.Event())

    def _unloaded(self) -> SpeechError:
        return SpeechError(f"The model `{self.name}` was unloaded.")

    @abstractmethod
    def decode(self, sound: Samples, hotwords: tuple[str, ...], given_up: threading.Event) -> str:
        """The words in a sound that is short enough. Blocks.

        It looks from time to time whether it was given up, and then ends with whatever text.
        """

    @abstractmethod
    def free(self) -> None:
        """Let go of the memory. Blocks."""

    async def close(self) -> None:
        """Free the memory, after what is going on; what waits gets an error. Idempotent."""
        if self._closed:
            return
        self._closed = True
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self.free)
        finally:
            self._thread.shutdown(wait=False)
