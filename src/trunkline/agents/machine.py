"""The models of the catalog that embed, hear and speak, for whoever asks over HTTP: `core.machine.MachineModels`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from trunkline.agents.graph.hearing.pcm import Mono, PcmFormat, Resampler
from trunkline.agents.graph.pool_engines import load_engine
from trunkline.core.events import Audio
from trunkline.core.faults import ModelError, NoEmbeddingModel, NoRecognizer, NoVoice, Unsupported
from trunkline.core.machine import Embedded, Heard, ModelKind
from trunkline.models import catalog
from trunkline.models.catalog_entry import EMBEDDING, HEARS, SPEAKS, CatalogEntry
from trunkline.models.embedding_mock import MockEmbedding
from trunkline.models.here import MOCK, is_here, models_here
from trunkline.models.installed import lacking_engines
from trunkline.models.kept import Kept
from trunkline.models.voice.engines import HEARING_RATE
from trunkline.models.voice.sound import SAMPLE_BYTES, pieces, samples

if TYPE_CHECKING:
    from trunkline.models.engines import EmbeddingEngine
    from trunkline.models.voice.engines import Recognizer, Voice

#: What stands in front of the names of models where there are agents, too.
PREFIX = "model:"
#: OpenAI's names, by what they begin with: clients that know no others mean whichever is here.
_USUAL: dict[ModelKind, tuple[str, ...]] = {
    EMBEDDING: ("text-embedding-",),
    HEARS: ("whisper-1", "gpt-4o-transcribe", "gpt-4o-mini-transcribe"),
    SPEAKS: ("tts-1", "gpt-4o-mini-tts"),
}
_MISSING: dict[ModelKind, type[ModelError]] = {EMBEDDING: NoEmbeddingModel, HEARS: NoRecognizer, SPEAKS: NoVoice}
_WHAT: dict[ModelKind, str] = {EMBEDDING: "an embedding model", HEARS: "a model that hears", SPEAKS: "a voice"}
#: The parts of a sound that is told in parts: as long as a caption can be read.
PART_SECONDS = 8.0
#: What our recognizers were made for.
_LANGUAGES = ("en", "english")
#: Bytes of a sound that are brought to another rate before others have their turn.
_BLOCK = 1 << 20


class CatalogModels:
    """`MachineModels`, for one event loop."""

    def __init__(self, threads: int | None = None) -> None:
        self._kept: Kept[Any] = Kept()
        self._threads = threads

    def names(self) -> Sequence[str]:
        """Those that are here, without loading any."""
        found = [name for kind in (EMBEDDING, HEARS, SPEAKS) for name in models_here(kind)]
        return [name for name in found if name != MOCK]

    def find(self, model: str, kind: ModelKind) -> str:
        """The model that a client means; see `MachineModels`."""
        name = model.removeprefix(PREFIX)
        missing = _MISSING[kind]
        if name == MOCK and kind == EMBEDDING:
            return name
        entries = [entry for entry in catalog.entries() if entry.kind == kind]
        named = [entry for entry in entries if entry.name == name]
        if not named and name.startswith(_USUAL[kind]):
            named = [entry for entry in entries if is_here(entry)] or entries
        if not named:
            raise missing(
                f"There is no model `{name[:80]}` that is {_WHAT[kind]}.",
                hint=f"Name one of these: {', '.join(f'`{entry.name}`' for entry in entries)}.",
            )
        entry = named[0]
        if (lacks := lacking_engines([entry.engine])) is not None:
            raise missing(lacks)
        if catalog.path(entry) is None:
            raise missing(
                f"The model `{entry.name}` is not here yet.", hint=f"Get it with `trunkline models pull {entry.name}`."
            )
        return entry.name

    async def embed(self, name: str, texts: Sequence[str]) -> Embedded:
        """Texts as vectors."""
        if name == MOCK:
            return Embedded(await MockEmbedding().embed(texts), sum(len(text.split()) for text in texts))
        async with self._kept.use(name, self._loader(name)) as loaded:
            engine: EmbeddingEngine = loaded
            vectors = await engine.embed(texts)
            count = getattr(engine, "tokens", None)
            return Embedded(vectors, None if count is None else await asyncio.to_thread(count, texts))

    async def transcribe(
        self, name: str, sound: Audio, *, prompt: str = "", language: str = "", segmented: bool = False
    ) -> AsyncGenerator[Heard, None]:
        """What is said in a sound."""
        form = PcmFormat(sound.rate, sound.channels)
        form.check()
        if language and language.lower() not in _LANGUAGES:
            raise Unsupported(f"The model `{name}` writes down English (`en`) only, and not `{language[:20]}`.")
        pcm = await asyncio.to_thread(_hearable, sound.data, form)
        parts = await asyncio.to_thread(_parts, pcm) if segmented else [pcm]
        words = (prompt,) if prompt.strip() else ()
        async with self._kept.use(name, self._loader(name)) as loaded:
            recognizer: Recognizer = loaded
            at = 0
            for part in parts:
                begin, at = at, at + len(part)
                if text := await recognizer.transcribe(part, hotwords=words):
                    yield Heard(_seconds(begin), _seconds(at), text)

    async def speak(
        self, name: str, text: str, *, speed: float = 1.0, rate: int | None = None
    ) -> AsyncGenerator[Audio, None]:
        """The sound of a text."""
        async with self._kept.use(name, self._loader(name)) as loaded:
            voice: Voice = loaded
            own = voice.sample_rate
            change = None if rate in (None, own) else Resampler(own, rate or own)
            mono = Mono(PcmFormat(own))
            async with aclosing(voice.speak(text, speed=speed)) as sound:
                async for piece in sound:
                    if change is not None:
                        piece = change.feed(mono.feed(piece))
                    if piece:
                        yield Audio(piece, rate or own)
            if change is not None and (rest := change.flush()):
                yield Audio(rest, rate or own)

    async def close(self) -> None:
        """Let go of all that is loaded. Idempotent."""
        await self._kept.close()

    def _loader(self, name: str) -> Callable[[], Any]:
        entry: CatalogEntry = catalog.find(name)

        async def load() -> Any:
            path = await asyncio.to_thread(catalog.path, entry)
            if path is None:
                raise ModelError(f"The model `{name}` is gone.", hint=f"Get it with `trunkline models pull {name}`.")
            return await load_engine(entry, path, places=None, threads=self._threads)

        return load


def _hearable(pcm: bytes, form: PcmFormat) -> bytes:
    """A whole sound in one channel, at `HEARING_RATE`."""
    mono, change = Mono(form), Resampler(form.rate)
    made = [change.feed(mono.feed(pcm[start : start + _BLOCK])) for start in range(0, len(pcm), _BLOCK)]
    return b"".join((*made, change.flush()))


def _parts(pcm: bytes) -> list[bytes]:
    """A sound in parts, cut where it is quiet."""
    parts, at = [], 0
    for part in pieces(samples(pcm), PART_SECONDS):
        end = at + len(part) * SAMPLE_BYTES
        parts.append(pcm[at:end])
        at = end
    return parts


def _seconds(length: int) -> float:
    return round(length / SAMPLE_BYTES / HEARING_RATE, 3)
