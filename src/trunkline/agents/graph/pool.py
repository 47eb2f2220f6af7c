"""The models of one server: listed, fetched, loaded and let go, for all of its sessions.

    pool = ModelPool(models_dir="models")
    engine = await pool.language("smollm2-135m", InferenceEngine.LLAMA_CPP)
    ...
    engine.release(slot)
    await pool.close()

A model is loaded once, however many use it. It goes when nobody does any more: each call of `language` is one use, and
the node's `release` ends it; an embedding engine is in use as long as somebody holds it. A model that was loaded by its
name is pinned, and stays until it is unloaded.
"""

from __future__ import annotations

import asyncio
import logging
import os
import weakref
from collections.abc import Callable
from functools import partial

from trunkline.agents.graph.pool_engines import LoadedEngine, is_speech, load_engine
from trunkline.agents.graph.pool_leases import EmbeddingLease, LanguageLease
from trunkline.agents.graph.pool_memory import MemoryMeter, Resident
from trunkline.agents.graph.weights import Weights
from trunkline.core.faults import (
    ConfigError,
    DownloadActive,
    Fault,
    ModelError,
    ModelNotFetched,
    NoEmbeddingModel,
    NoLanguageModel,
    ProviderError,
)
from trunkline.core.graph.hosting import Progress
from trunkline.core.graph.models import ModelInfo
from trunkline.core.graph.ordinals import InferenceEngine, ModelStatus
from trunkline.core.graph.resident import ResidentModel
from trunkline.models import catalog, catalog_json, naming
from trunkline.models.catalog_entry import EMBEDDING, LLAMA, LLM, LORA, ONNX, OPENAI, USUAL_WINDOW, CatalogEntry
from trunkline.models.embedding_mock import MockEmbedding
from trunkline.models.engines import EmbeddingEngine, LanguageEngine
from trunkline.models.installed import lacking_engines
from trunkline.models.load_options import UNKNOWN, LoadedAs, used_by
from trunkline.models.mock_language import MockLanguage
from trunkline.models.voice.speakers import speakers

logger = logging.getLogger(__name__)

#: What hears, speaks and tells speech from noise is listed under the engine that clients know for it.
SPEECH = "sherpa-onnx"
#: What clients call a language model.
LANGUAGE = "language"


class ModelPool:
    """All models that there are.

    Args:
        models_dir: a folder with a `models.json`, or with GGUF files that are offered under their names.
        places: conversations that one model goes on with at once; as many as suit the machine by default.
        threads: for each model; all cores but one by default.

    Raises:
        ConfigError: the `models.json` cannot be used.
    """

    def __init__(
        self,
        *,
        models_dir: str | None = None,
        places: int | None = None,
        threads: int | None = None,
    ) -> None:
        self._weights = Weights(models_dir)
        entries = {entry.name: _usual(entry) for entry in catalog.entries()}
        if models_dir is not None:
            entries = {entry.name: entry for entry in catalog_json.loose(models_dir)} | entries
            entries |= {entry.name: entry for entry in catalog_json.listed(models_dir)}
        self._entries = entries
        self._places = places
        self._threads = threads
        self._residents: dict[str, Resident] = {}
        self._meter = MemoryMeter()
        self._downloads: dict[str, asyncio.Task[None]] = {}
        # Engines on their way out.
        self._closing: set[asyncio.Task[None]] = set()

    def named(self, kind: str) -> tuple[str, ...]:
        """The names of all models of a kind, in the order of the catalog. Looks at no file."""
        return tuple(entry.name for entry in self._entries.values() if entry.kind == kind)

    def is_here(self, name: str) -> bool:
        """Whether a model could be loaded now. Looks at the files of this one only."""
        entry = self._entries.get(name)
        return entry is not None and self._status(entry) not in (ModelStatus.ABSENT, ModelStatus.DOWNLOADING)

    def list(self) -> tuple[ModelInfo, ...]:
        """Every model of the catalog, as it is now. Looks at all their files: for a thread."""
        return tuple(map(self._info, self._entries.values()))

    def resident(self) -> tuple[ResidentModel, ...]:
        """Those that are loaded, and what they take. Looks at no file."""
        return tuple(each.told(name) for name, each in self._residents.items() if each.is_there)

    def _info(self, entry: CatalogEntry) -> ModelInfo:
        path = self._weights.path(entry) if entry.engine != OPENAI else None
        used = self._used(entry.name)
        return ModelInfo(
            name=entry.name,
            status=self._status(entry),
            huggingface_repo=entry.repository,
            size_bytes=self._weights.size(entry) if path else 0,
            model_type=_told_kind(entry.kind),
            engine=SPEECH if is_speech(entry) else entry.engine,
            audience=entry.audience,
            tool_call_format=entry.tool_call_format,
            context_size=entry.context or 0,
            files=tuple(file.name for file in entry.files),
            local_path=os.path.dirname(path) if path else "",
            default_sampling=entry.sampling,
            description=entry.description,
            good_for=entry.good_for,
            licence=entry.licence,
            languages=entry.languages,
            memory_bytes=entry.memory,
            gpu_layers=used.gpu_layers,
            threads=used.threads,
            context_used=used.context,
            kv_cache_type=used.kv_cache_type,
            device=used.device,
            voices=speakers(entry, path or ""),
        )

    def _used(self, name: str) -> LoadedAs:
        """How a model was loaded, if it is."""
        resident = self._residents.get(name)
        if resident is None or not resident.loading.done() or resident.loading.cancelled():
            return UNKNOWN
        return UNKNOWN if resident.loading.exception() is not None else used_by(resident.loading.result())

    def _status(self, entry: CatalogEntry) -> int:
        resident = self._residents.get(entry.name)
        if resident is not None and resident.loading.done():
            return ModelStatus.LOADED
        if entry.name in self._downloads:
            return ModelStatus.DOWNLOADING
        return self._weights.status(entry)

    # Engines.

    async def language(self, name: str, engine: int, client: object = None) -> LanguageEngine:
        """A language model, for one node, whoever the client is. Its `release` ends the use.

        Raises:
            NoLanguageModel: it is not there, or cannot be used.
            ModelError: there is no engine for it.
        """
        if engine == InferenceEngine.MOCK:
            return MockLanguage(name)
        entry = self._usable(name, engine, LLM, NoLanguageModel)
        resident, loaded = await self._use(entry, NoLanguageModel)
        return LanguageLease(loaded, self._ender(name, resident))  # type: ignore[arg-type]  # of that kind

    async def embedding(self, name: str, engine: int) -> EmbeddingEngine:
        """An embedding model. The use ends when nobody holds it any more.

        Raises:
            NoEmbeddingModel: it is not there, or cannot be used.
            ModelError: there is no engine for it.
        """
        if engine == InferenceEngine.MOCK:
            return MockEmbedding(name)
        entry = self._usable(name, engine, EMBEDDING, NoEmbeddingModel)
        resident, loaded = await self._use(entry, NoEmbeddingModel)
        lease = EmbeddingLease(loaded)  # type: ignore[arg-type]  # of that kind
        loop = asyncio.get_running_loop()
        end = self._ender(name, resident)
        weakref.finalize(lease, _in_loop, loop, end).atexit = False
        return lease

    async def speech(self, name: str, kind: str, missing: type[ModelError]) -> tuple[LoadedEngine, Callable[[], None]]:
        """A model that hears or speaks, and what ends its use, in any thread. It stays loaded until it is unloaded.

        Raises:
            ModelError: of that kind; it is not there, is of another kind, or cannot be used. ModelError, there is no
                engine for it.
        """
        entry = self._of_kind(name, kind, missing)
        _see_to_engine(entry)
        resident, loaded = await self._use(entry, missing, pin=True)
        return loaded, partial(_in_loop, asyncio.get_running_loop(), self._ender(name, resident))

    def _usable(self, name: str, engine: int, kind: str, missing: type[ModelError]) -> CatalogEntry:
        entry = self._of_kind(name, kind, missing)
        _see_to_engine(entry, engine)
        return entry

    def _of_kind(self, name: str, kind: str, missing: type[ModelError]) -> CatalogEntry:
        entry = self._entries.get(name)
        if entry is None:
            raise missing(_unknown(name))
        if entry.kind != kind:
            raise missing(
                f"The model `{name}` is of the kind {_told_kind(entry.kind)}, and {_told_kind(kind)} is needed."
            )
        return entry

    async def _use(
        self, entry: CatalogEntry, missing: type[ModelError], *, pin: bool = False
    ) -> tuple[Resident, LoadedEngine]:
        """Count one use more of a model, and wait until it is loaded. `pin`: keep it, from now on: whoever unloads it
        while it is being loaded has the last word."""
        resident = self._residents.get(entry.name)
        if resident is None:
            path = self._weights.path(entry) if entry.engine != OPENAI else ""
            if path is None:
                raise missing(f"The model `{entry.name}` is not on this machine: download it first.")
            resident = Resident(
                load_engine(entry, path, places=self._places, threads=self._threads, lora=self._adapters(entry)),
                self._meter,
                self._weights.size(entry) if path else 0,
            )
            self._residents[entry.name] = resident
        resident.uses += 1
        resident.pinned |= pin
        try:
            return resident, await asyncio.shield(resident.loading)
        except (ProviderError, ConfigError) as error:
            self._end(entry.name, resident)
            raise missing(f"The model `{entry.name}`: {error}") from None
        except BaseException:
            self._end(entry.name, resident)
            raise

    def _adapters(self, base: CatalogEntry) -> dict[str, str]:
        """The files of the adapters of a model that are here, by name. One that comes later is there when the model is
        loaded the next time."""
        known = (entry for entry in self._entries.values() if entry.kind == LORA and base.name in entry.bases)
        return {entry.name: path for entry in known if (path := self._weights.path(entry)) is not None}

    def _ender(self, name: str, resident: Resident) -> Callable[[], None]:
        return lambda: self._end(name, resident)

    def _end(self, name: str, resident: Resident) -> None:
        """One use less. The last one takes the model along, unless it is pinned."""
        resident.uses -= 1
        self._evict(name, resident)

    def _evict(self, name: str, resident: Resident) -> None:
        if resident.uses > 0 or self._residents.get(name) is not resident:
            return
        loading = resident.loading
        if not loading.done():
            # Whoever wanted it is gone; it is looked at again when it is there.
            loading.add_done_callback(lambda _: self._evict(name, resident))
            return
        if loading.cancelled() or loading.exception() is not None:
            del self._residents[name]
        elif not resident.pinned:
            del self._residents[name]
            closing = asyncio.create_task(loading.result().close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    # What clients ask for by name.

    def _known(self, name: str) -> CatalogEntry:
        entry = self._entries.get(name)
        if entry is None:
            raise ModelError(_unknown(name))
        return entry

    def check_language(self, name: str) -> None:
        """See to it that a model is one that answers.

        Raises:
            NoLanguageModel: it is not in the catalog, or does something else.
        """
        self._of_kind(name, LLM, NoLanguageModel)

    def check(self, *names: str) -> None:
        """See to it that models could be used, without fetching them.

        Raises:
            ModelError: one is not in the catalog, or there is no engine for it. All engines that are to be installed
                are named.
        """
        entries = [self._known(name) for name in names]
        for entry in entries:
            _see_to_kind(entry)
        if (lacks := lacking_engines(entry.engine for entry in entries)) is not None:
            raise ModelError(lacks)

    async def download(self, name: str, progress: Progress | None = None) -> None:
        """Fetch a model. It goes on when the caller is cancelled: it is for all sessions.

        Raises:
            ModelError: not in the catalog, nowhere to be had, or there is no engine for it.
            DownloadFailed: it did not work, there is no room, or it is being fetched.
        """
        self.check(name)
        entry = self._entries[name]
        if name in self._downloads:
            raise DownloadActive(f"The model `{name}` is already being downloaded.")
        if entry.engine == OPENAI:
            raise ModelError(f"The model `{name}` runs on another machine: there is nothing to download.")

        def report(done: int, total: int) -> None:
            if progress is not None:
                progress(name, done, total)

        task = asyncio.create_task(self._weights.fetch(entry, report))
        self._downloads[name] = task
        task.add_done_callback(lambda _: self._downloaded(name, task))
        await asyncio.shield(task)

    def _downloaded(self, name: str, task: asyncio.Task[None]) -> None:
        del self._downloads[name]
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.info("a download failed: %s", error)

    async def ensure(self, name: str, engine: int, progress: Progress | None = None) -> None:
        """Fetch a model that an agent or a storage needs, if it is not here; if it is coming, wait for it.

        Raises:
            ModelNotFetched: it cannot be had.
            ModelError: nothing here would run it, so that nothing is fetched.
        """
        entry = self._entries.get(name)
        if entry is None:
            raise ModelNotFetched(_unknown(name))
        _see_to_engine(entry, engine)
        if self._weights.status(entry) != ModelStatus.ABSENT or name in self._residents:
            return
        try:
            if (running := self._downloads.get(name)) is not None:
                await asyncio.shield(running)
            else:
                await self.download(name, progress)
        except Fault as error:
            raise ModelNotFetched(error.message, retryable=error.retryable) from None

    async def load(self, name: str) -> None:
        """Load a model, and keep it until it is unloaded: the last that was asked for of the two counts.

        One that is unloaded while it is being loaded goes when it is there. One whose caller is cancelled stays.

        Raises:
            ModelError: not in the catalog, not here, or it cannot be loaded.
        """
        entry = self._known(name)
        _see_to_engine(entry)
        resident, _ = await self._use(entry, ModelError, pin=True)
        self._end(name, resident)

    async def unload(self, name: str) -> None:
        """Keep a model no longer: it goes when nobody uses it. Idempotent.

        Raises:
            ModelError: not in the catalog.
        """
        self._known(name)
        if (resident := self._residents.get(name)) is not None:
            resident.pinned = False
            self._evict(name, resident)

    async def delete(self, name: str) -> None:
        """Remove what was downloaded.

        Raises:
            ModelError: not in the catalog, loaded, or not downloaded.
            DownloadActive: it is being downloaded.
        """
        entry = self._known(name)
        if name in self._residents:
            raise ModelError(f"The model `{name}` is loaded.")
        if name in self._downloads:
            raise DownloadActive(f"The model `{name}` is being downloaded.")
        await self._weights.delete(entry)

    async def close(self) -> None:
        """Stop downloads and unload everything. Idempotent."""
        running = [*self._downloads.values(), *(resident.loading for resident in self._residents.values())]
        for download in self._downloads.values():
            download.cancel()
        if running:
            await asyncio.wait(running)
        residents = list(self._residents.items())
        for name, resident in residents:
            resident.pinned = False
            resident.uses = 0
            self._evict(name, resident)
        if self._closing:
            await asyncio.wait(self._closing)


def _see_to_engine(entry: CatalogEntry, engine: int | None = None) -> None:
    """See to it that there is something that runs a model, and is installed; on the engine asked for, if one was.

    Raises:
        ModelError: there is not.
    """
    _see_to_kind(entry, engine)
    if (lacks := lacking_engines((entry.engine,))) is not None:
        raise ModelError(f"The model `{entry.name}` cannot be used. {lacks}")


def _see_to_kind(entry: CatalogEntry, engine: int | None = None) -> None:
    """See to it that we have something for models like this one, installed or not."""
    speaks = is_speech(entry) or entry.engine == SPEECH
    usual = InferenceEngine.SHERPA_ONNX if speaks else InferenceEngine.LLAMA_CPP
    runs = is_speech(entry) or (entry.engine in (LLAMA, ONNX, OPENAI) and entry.kind in (LLM, EMBEDDING, LORA))
    if not runs or engine not in (None, usual):
        asked = "" if engine is None else " on the engine asked for"
        where = "" if runs else f": it is for `{entry.engine}`, and a {_told_kind(entry.kind)} model"
        raise ModelError(f"There is nothing here that runs the model `{entry.name}`{asked}{where}.")


def _unknown(name: str) -> str:
    pull = f": `trunkline models pull {name}` on this machine gets it, for the next start" if naming.split(name) else ""
    return f"There is no model `{name}` in the catalog{pull}."


def _usual(entry: CatalogEntry) -> CatalogEntry:
    """A model of the catalog as a server offers it: to everybody, and with a window that it has memory for."""
    return entry.replace(audience="public", context=min(entry.context or 0, USUAL_WINDOW) or None)


def _told_kind(kind: str) -> str:
    """What clients call models of a kind."""
    return LANGUAGE if kind == LLM else kind


def _in_loop(loop: asyncio.AbstractEventLoop, end: Callable[[], None]) -> None:
    """Have something done by the loop, whoever runs this: the garbage collector may, in any thread."""
    try:
        loop.call_soon_threadsafe(end)
    except RuntimeError:  # the loop is closed, and the engine with it
        pass
