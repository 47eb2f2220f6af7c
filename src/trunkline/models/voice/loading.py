"""Loading a model of the catalog that hears or speaks, whichever engine it needs."""

from __future__ import annotations

from typing import Protocol

from trunkline.models.catalog_entry import CatalogEntry
from trunkline.models.catalog_voice import ESPEAK, MOONSHINE, PIPER, WHISPER
from trunkline.models.installed import missing_extra
from trunkline.models.voice.engines import Recognizer, SpeechError, Voice


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
    raise SpeechError(f"`{entry.name}` does not hear.")


async def load_voice(entry: CatalogEntry, path: str, *, threads: int | None = None) -> Voice:
    """A model that speaks.

    Raises:
        SpeechError: it cannot be loaded.
    """
    if entry.engine == PIPER:
        from trunkline.models.voice import piper

        return await piper.load(entry.name, path, threads=threads)
    if entry.engine == ESPEAK:
        from trunkline.models.voice import espeak

        return await espeak.load(entry.name)
    raise SpeechError(f"`{entry.name}` does not speak.")


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
    raise SpeechError(f"`{entry.name}` neither hears nor speaks.")
