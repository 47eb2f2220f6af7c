"""Loading a model of the catalog that hears or speaks, whichever engine it needs."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Protocol

from trunkline.base.extras import adding
from trunkline.models.catalog_entry import CatalogEntry
from trunkline.models.catalog_voice import ESPEAK, MOONSHINE, PIPER, WHISPER
from trunkline.models.installed import missing_extra
from trunkline.models.llama_server import default_threads
from trunkline.models.voice.engines import Recognizer, SpeechError, Voice
from trunkline.models.voice.process_voice import ProcessVoice

#: Where these engines are: in processes of their own.
_PIPER_PROCESS = "trunkline.models.voice.piper_process"
_ESPEAK_PROCESS = "trunkline.models.voice.espeak_process"


class Loaded(Protocol):
    """Anything that was."""

    async def close(self) -> None:
        """Let go of it. Idempotent."""


class _Silero:
    """Each stream has a detector of its own, so that nothing is shared but the fact that it works."""

    async def close(self) -> None:
        return None


async def load_recognizer(entry: CatalogEntry, path: str, *, threads: int | None = None) -> Recognizer:
    """A model that hears.

    Raises:
        SpeechError: it cannot be loaded.
    """
    if entry.engine == WHISPER:
        from trunkline.models.voice.whisper import Whisper

        return await Whisper.load(entry.name, path, threads=threads)
    if entry.engine == MOONSHINE:
        from trunkline.models.voice.moonshine import Moonshine

        return await Moonshine.load(entry.name, path, threads=threads)
    raise SpeechError(f"`{entry.name}` is not a speech recognition model.")


async def load_voice(entry: CatalogEntry, path: str, *, threads: int | None = None) -> Voice:
    """A model that speaks.

    Raises:
        SpeechError: it cannot be loaded.
    """
    if entry.engine == PIPER:
        return await load_piper(entry.name, path, threads=threads)
    if entry.engine == ESPEAK:
        return await load_espeak(entry.name)
    raise SpeechError(f"`{entry.name}` does not speak.")


async def load_piper(name: str, path: str, *, threads: int | None = None) -> ProcessVoice:
    """The voice in an ONNX file, with its settings in a `.json` beside it: neural, quicker than speech on one core.

    Raises:
        SpeechError: it cannot be loaded.
    """
    if find_spec("piper") is None:
        raise SpeechError(f"Piper is not installed. {adding('voice-gpl')}")
    return await ProcessVoice.load(name, _PIPER_PROCESS, [path, str(threads or default_threads())])


async def load_espeak(name: str) -> ProcessVoice:
    """eSpeak NG's voice of American English: that of a machine, and there at once.

    Raises:
        SpeechError: it cannot be loaded.
    """
    if find_spec("espeakng_loader") is None:
        raise SpeechError(f"eSpeak NG is not installed. {adding('voice-gpl')}")
    return await ProcessVoice.load(name, _ESPEAK_PROCESS)


async def load(entry: CatalogEntry, path: str, *, threads: int | None = None) -> Loaded:
    """A model of whichever of these kinds.

    Raises:
        SpeechError: it cannot be loaded.
    """
    if entry.kind == "stt":
        return await load_recognizer(entry, path, threads=threads)
    if entry.kind == "tts":
        return await load_voice(entry, path, threads=threads)
    if entry.kind == "vad" and missing_extra(entry.engine) is None:
        return _Silero()
    raise SpeechError(f"`{entry.name}` is not a voice model.")
