"""The models of a server: listed, fetched, loaded, pinned, let go and deleted."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.agents.graph.helpers import end, graph, node_names, take
from tests.agents.graph.pools import REAL, info, refusal
from tests.support.local_model import MODEL, SHARED_CACHE, THREADS, TIMEOUT_SECONDS, model_path
from trunkline.agents.graph.agent import GraphAgent
from trunkline.agents.graph.host import LocalHost
from trunkline.agents.graph.pool import ModelPool
from trunkline.agents.graph.turn import NodeNotice
from trunkline.agents.graph.weights import Weights
from trunkline.core.fault_table import form_of
from trunkline.core.faults import ConfigError, Fault, ModelError, NoLanguageModel, NoRecognizer, ProviderError
from trunkline.models import catalog
from trunkline.models.embedding_mock import MockEmbedding
from trunkline.models.embedding_onnx import OnnxEmbedding
from trunkline.models.engines import LanguageEngine, Slot
from trunkline.models.llama_language import LlamaLanguage
from trunkline.models.mock_language import MockLanguage
from trunkline.wires.tryll.messages import (
    ClassifyIntentLLMParams,
    InferenceEngine,
    ModelStatus,
    SamplingOverrides,
    ToolCallParams,
    ToolDefinition,
    ToolParamDefinition,
    TurnStatus,
)

MOCK = InferenceEngine.MOCK


class Loaded(MockLanguage):
    """An engine that knows whether it was closed."""

    made: list[Loaded]
    broken = False
    closed = False

    @classmethod
    def first_is_closed(cls) -> bool:
        return cls.made[0].closed

    async def close(self) -> None:
        self.closed = True


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> type[Loaded]:
    """Loading makes one of these instead of reading weights. It takes a while."""
    Loaded.made, Loaded.broken = [], False

    async def load(name: str, path: str, **options: Any) -> Loaded:
        for _ in range(5):
            await asyncio.sleep(0)
        if Loaded.broken:
            raise ProviderError("it is damaged.")
        engine = Loaded(name)
        Loaded.made.append(engine)
        return engine

    monkeypatch.setattr(LlamaLanguage, "load", load)
    monkeypatch.setattr(OnnxEmbedding, "load", load)
    return Loaded


@pytest.fixture
async def pool(tmp_path: Path) -> AsyncIterator[ModelPool]:
    """With a file of its own, `mine`."""
    (tmp_path / "mine.gguf").write_bytes(b"GGUF")
    # One thread: what is asked of it is done in its order, and can be waited for.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    pool = ModelPool(models_dir=str(tmp_path))
    yield pool
    await pool.close()


async def settled() -> None:
    await asyncio.to_thread(int)
    for _ in range(10):
        await asyncio.sleep(0)


# What there is.


def test_built_in_models_are_listed_and_absent_until_they_are_pulled() -> None:
    listed = {each.name: each for each in ModelPool().list()}
    assert listed["smollm2-135m"].model_type == "language"
    assert listed["minilm-l6"].model_type == "embedding"
    packaged = [listed.pop(name) for name in ("espeak", "silero-vad")]
    assert all(each.status == ModelStatus.LOCAL and each.size_bytes > 0 for each in packaged)
    for each in listed.values():
        assert (each.status, each.size_bytes, each.local_path) == (ModelStatus.ABSENT, 0, "")


def test_a_model_tells_what_somebody_who_chooses_one_wants_to_know() -> None:
    told = next(each for each in ModelPool().list() if each.name == "llama-3.2-1b")
    entry = catalog.find("llama-3.2-1b")
    assert (told.licence, told.languages) == ("Llama 3.2 Community", ("en", "de", "es", "fr", "hi", "it", "pt", "th"))
    assert (told.description, told.good_for, told.memory_bytes) == (entry.description, entry.good_for, entry.memory)
    assert told.size_bytes == 0


async def test_a_model_whose_configuration_is_wrong_is_an_error_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    monkeypatch.setenv("TRUNKLINE_MODELS_THREADS", "none")
    pool = ModelPool(models_dir=str(tmp_path))
    with pytest.raises(ModelError, match="TRUNKLINE_MODELS_THREADS: must be a whole number from 1 to 256, not `none`"):
        await pool.load("m")
    await pool.close()


def test_a_model_tells_the_repository_that_it_comes_from_and_nothing_else(tmp_path: Path) -> None:
    sources = {"hub": "owner/repo", "address": "https://127.0.0.1/f.gguf", "nowhere": ""}
    entries = [{"name": name, "huggingface_repo": source, "files": ["f.gguf"]} for name, source in sources.items()]
    (tmp_path / "models.json").write_text(json.dumps({"models": entries}))
    built_in = {entry.name for entry in catalog.ENTRIES}
    pool = ModelPool(models_dir=str(tmp_path))
    told = {each.name: each.huggingface_repo for each in pool.list() if each.name not in built_in}
    assert {name: repository for name, repository in told.items() if repository} == {"hub": "owner/repo"}


async def test_a_model_that_nothing_here_runs_is_refused_at_once_and_not_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fetch(*_: object) -> None:
        pytest.fail("it was fetched")

    monkeypatch.setattr(Weights, "fetch", fetch)
    kinds = {"foreign": ("tensorrt-llm", "language"), "odd": ("llama-cpp", "reranking"), "ears": ("sherpa-onnx", "stt")}
    entries = [
        {"name": name, "engine": engine, "purpose": kind, "huggingface_repo": "o/r", "files": ["f.gguf"]}
        for name, (engine, kind) in kinds.items()
    ]
    usual = {"name": "usual", "huggingface_repo": "o/r", "files": ["f.gguf"]}
    (tmp_path / "models.json").write_text(json.dumps({"models": [*entries, usual]}))
    pool = ModelPool(models_dir=str(tmp_path))
    refused: list[Any] = [pool.ensure("usual", InferenceEngine.OPEN_VINO), pool.speech("ears", "stt", NoRecognizer)]
    for name in kinds:
        refused += [pool.ensure(name, REAL), pool.download(name), pool.load(name)]
    refused += [pool.language("foreign", REAL)]
    assert [(await refusal(each)).code for each in refused] == [6002] * len(refused)
    # Of an engine is spoken where one was asked for.
    assert "on the engine asked for" in (await refusal(pool.ensure("usual", InferenceEngine.OPEN_VINO))).message
    assert "asked for" not in (await refusal(pool.load("foreign"))).message
    await pool.close()


async def test_a_server_that_would_hear_or_speak_is_listed_and_not_used(tmp_path: Path) -> None:
    entries = [
        {"name": kind, "type": kind, "engine": "openai", "url": "http://127.0.0.1:1/v1"} for kind in ("stt", "tts")
    ]
    (tmp_path / "models.json").write_text(json.dumps({"models": entries}))
    pool = ModelPool(models_dir=str(tmp_path))
    assert info(pool, "stt").engine == "openai"
    assert (await refusal(pool.speech("stt", "stt", NoRecognizer))).code == 6002
    assert (await refusal(pool.load("tts"))).code == 6002
    await pool.close()


def test_a_catalog_that_cannot_be_used_is_an_error_at_once(tmp_path: Path) -> None:
    (tmp_path / "models.json").write_text("{")
    with pytest.raises(ConfigError, match=r"models\.json"):
        ModelPool(models_dir=str(tmp_path))


async def test_a_file_in_the_folder_is_a_model_and_is_not_deleted(pool: ModelPool, tmp_path: Path) -> None:
    mine = info(pool, "mine")
    assert (mine.status, mine.size_bytes, mine.local_path) == (ModelStatus.LOCAL, 4, str(tmp_path))
    assert (await refusal(pool.delete("mine"))).code == 6002
    assert (tmp_path / "mine.gguf").exists()


async def test_mock_engines_take_any_name(pool: ModelPool) -> None:
    assert isinstance(await pool.language("never heard of", MOCK), MockLanguage)
    assert isinstance(await pool.embedding("never heard of", MOCK), MockEmbedding)


async def test_what_is_not_in_the_catalog_is_refused_by_its_name(pool: ModelPool) -> None:
    for action in (pool.load, pool.unload, pool.delete, pool.download):
        error = await refusal(action("nobody"))
        assert error.code == 6002
        assert "`nobody`" in error.message
    for use, code in ((pool.language, 3003), (pool.embedding, 8003)):
        assert (await refusal(use("nobody", REAL))).code == code
    assert (await refusal(pool.ensure("nobody", REAL))).code == 6006


async def test_a_model_that_is_not_here_or_of_another_kind_cannot_be_used(pool: ModelPool) -> None:
    absent = await refusal(pool.language("smollm2-135m", REAL))
    assert (absent.code, "`smollm2-135m`" in absent.message) == (3003, True)
    assert (await refusal(pool.load("smollm2-135m"))).code == 6002
    assert (await refusal(pool.language("minilm-l6", REAL))).code == 3003
    assert (await refusal(pool.embedding("mine", REAL))).code == 8003
    assert (await refusal(pool.language("mine", InferenceEngine.WINDOWS_ML))).code == 6002


# Loaded once, and let go.


async def test_a_model_is_loaded_once_and_goes_with_its_last_user(pool: ModelPool, engines: type[Loaded]) -> None:
    first, second = await asyncio.gather(pool.language("mine", REAL), pool.language("mine", REAL))
    assert len(engines.made) == 1
    assert info(pool, "mine").status == ModelStatus.LOADED
    assert (await refusal(pool.delete("mine"))).code == 6002
    slot = Slot("node")
    first.release(slot)
    first.release(slot)
    await settled()
    assert not engines.first_is_closed()
    second.release(slot)
    await settled()
    assert engines.first_is_closed()
    assert info(pool, "mine").status == ModelStatus.LOCAL


async def test_a_pinned_model_stays_until_it_is_unloaded(pool: ModelPool, engines: type[Loaded]) -> None:
    await pool.load("mine")
    await pool.load("mine")
    used = await pool.language("mine", REAL)
    used.release(Slot("node"))
    await settled()
    assert not engines.first_is_closed()
    used = await pool.language("mine", REAL)
    await pool.unload("mine")
    await pool.unload("mine")
    await settled()
    assert not engines.first_is_closed()
    used.release(Slot("node"))
    await settled()
    assert engines.first_is_closed()
    assert len(engines.made) == 1


LOADED, LOCAL = ModelStatus.LOADED, ModelStatus.LOCAL


@pytest.mark.parametrize(
    ("asked", "answers", "then"),
    [
        # What comes before the `|` is asked for while the model is loaded; `use` is a node, which `leave`s later.
        ("load", "ok", LOADED),
        ("load unload", "ok ok", LOCAL),
        ("load unload load", "ok ok ok", LOADED),
        ("load load unload", "ok ok ok", LOCAL),
        ("load delete", "ok 6002", LOADED),
        ("load unload delete", "ok ok 6002", LOCAL),
        ("use load unload", "ok ok ok", LOADED),
        ("use load unload | leave", "ok ok ok", LOCAL),
        ("use load | leave", "ok ok", LOADED),
        ("load | unload unload", "ok ok ok", LOCAL),
        ("load | unload load", "ok ok ok", LOADED),
        ("load gone", "left", LOADED),
        ("load gone unload", "left ok", LOCAL),
        ("load gone load unload", "left ok ok", LOCAL),
        ("use gone", "left", LOCAL),
        ("break load load unload", "6002 6002 ok", LOCAL),
        ("break load | mend use | leave", "6002 ok", LOCAL),
        ("break load | mend load", "6002 ok", LOADED),
    ],
)
async def test_the_last_of_load_and_unload_counts_whenever_it_comes(
    pool: ModelPool, engines: type[Loaded], asked: str, answers: str, then: int
) -> None:
    tasks: list[asyncio.Task[Any]] = []
    for step in asked.split():
        match step:
            case "|":
                await asyncio.wait(tasks)
                continue
            case "break" | "mend":
                engines.broken = step == "break"
                continue
            case "gone":
                tasks[-1].cancel()
            case "leave":
                next(each.result() for each in tasks if not each.exception() and each.result()).release(Slot("node"))
            case "use":
                tasks.append(asyncio.create_task(pool.language("mine", REAL)))
            case _:
                tasks.append(asyncio.create_task(getattr(pool, step)("mine")))
        # It begins, and is not through.
        await asyncio.sleep(0)
    found = await asyncio.gather(*tasks, return_exceptions=True)
    told = [_told(each) for each in found]
    await settled()
    assert (" ".join(map(str, told)), info(pool, "mine").status) == (answers, then)
    assert then == LOADED or all(each.closed for each in engines.made)


async def test_an_embedding_engine_goes_when_nobody_holds_it(
    pool: ModelPool, engines: type[Loaded], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Loaded, "dimensions", 3, raising=False)
    monkeypatch.setattr(Loaded, "fingerprint", "", raising=False)
    monkeypatch.setattr(catalog, "path", lambda entry: __file__)
    held = await pool.embedding("minilm-l6", REAL)
    assert (held.name, held.dimensions) == ("minilm-l6", 3)
    await settled()
    assert not engines.first_is_closed()
    del held
    gc.collect()
    await settled()
    assert engines.first_is_closed()


async def test_a_model_that_cannot_be_loaded_is_tried_again(pool: ModelPool, engines: type[Loaded]) -> None:
    engines.broken = True
    error = await refusal(pool.language("mine", REAL))
    assert (error.code, error.message) == (3003, "The model `mine`: it is damaged.")
    assert (await refusal(pool.load("mine"))).code == 6002
    engines.broken = False
    await pool.load("mine")
    assert info(pool, "mine").status == ModelStatus.LOADED


async def test_whoever_leaves_while_it_loads_leaves_nothing_behind(pool: ModelPool, engines: type[Loaded]) -> None:
    waiting = asyncio.create_task(pool.language("mine", REAL))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    await settled()
    assert engines.first_is_closed()
    assert info(pool, "mine").status == ModelStatus.LOCAL


# With the real small model.


@pytest.fixture(scope="module")
def gguf() -> str:
    return model_path()


@pytest.mark.slow
@pytest.mark.timeout(TIMEOUT_SECONDS)
async def test_a_graph_works_with_the_real_models(gguf: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUNKLINE_CACHE", SHARED_CACHE)
    monkeypatch.setenv("TRUNKLINE_MODELS_CONTEXT", "4096")
    monkeypatch.setenv("TRUNKLINE_MODELS_KV_CACHE_TYPE", "q8_0")
    pool = ModelPool(places=2, threads=THREADS)
    there = info(pool, MODEL)
    assert there.status == ModelStatus.DOWNLOADED
    assert (there.device, there.threads, there.context_used, there.kv_cache_type) == ("", 0, 0, "")
    tool = ToolDefinition("open_door", "Open a door", (ToolParamDefinition("which", "string", "Which door"),))
    described = graph(
        choose=ClassifyIntentLLMParams(
            intents_ids="buy,leave", threshold=0.0, margin=0.0, found_exit="call", not_found_exit="call"
        ),
        call=ToolCallParams(tools=(tool,), notify_client=True, sampling=SamplingOverrides(max_tokens=60)),
    )
    agents = [GraphAgent(described, PoolHost(pool), default_model=MODEL, diagnostics=True) for _ in range(2)]
    for each in agents:
        await each.open()
    loaded = info(pool, MODEL)
    assert loaded.status == ModelStatus.LOADED
    assert (loaded.device, loaded.threads, loaded.context_used, loaded.kv_cache_type) == ("cpu", THREADS, 4096, "q8_0")
    turns = await asyncio.gather(*(take(each, "Open the north door.") for each in agents))
    for events in turns:
        assert end(events).status == TurnStatus.SUCCESS
        assert node_names(events) == ["choose", "call"]
        for event in events:
            if isinstance(event, NodeNotice):
                assert dict(event.pairs)["tool_name"] == "open_door"
                assert isinstance(json.loads(dict(event.pairs)["arguments_json"]), dict)
    for each in agents:
        each.close()
    assert info(pool, MODEL).status == ModelStatus.DOWNLOADED
    await pool.close()


class PoolHost(LocalHost):
    """A host whose engines are a pool's."""

    def __init__(self, pool: ModelPool) -> None:
        super().__init__()
        self._pool = pool

    async def language(self, model_name: str) -> LanguageEngine:
        return await self._pool.language(model_name, REAL)


def _told(result: Any) -> object:
    """What became of a request: whoever asked left, the number of the fault, or that all is well."""
    if isinstance(result, asyncio.CancelledError):
        return "left"
    return form_of(result.kind).tryll if isinstance(result, Fault) else "ok"


async def test_a_model_whose_engine_is_not_installed_is_refused_before_it_is_fetched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fetched: list[str] = []

    async def fetch(self: Weights, entry: catalog.CatalogEntry, progress: object) -> None:
        fetched.append(entry.name)

    monkeypatch.setattr(Weights, "fetch", fetch)
    monkeypatch.setattr("trunkline.models.installed.find_spec", lambda module: None)
    pool = ModelPool()
    with pytest.raises(ModelError, match="The engine for embeddings is not installed"):
        await pool.ensure("minilm-l6", REAL)
    with pytest.raises(ModelError, match="The engine for local models is not installed"):
        await pool.download("smollm2-135m")
    assert fetched == []


async def test_a_model_is_loaded_with_its_adapters_that_are_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []

    async def load(name: str, path: str, **options: Any) -> Loaded:
        asked.append(options)
        return Loaded(name)

    monkeypatch.setattr(LlamaLanguage, "load", load)
    for name in ("mine", "pirate", "other"):
        (tmp_path / f"{name}.gguf").write_bytes(b"GGUF")
    listed = [
        {"name": "pirate", "type": "lora", "base_model": ["mine", "yours"], "local_path": "pirate.gguf"},
        {"name": "gone", "type": "lora", "base_model": "mine", "local_path": "gone.gguf"},
        {"name": "other", "type": "lora", "base_model": "yours", "local_path": "other.gguf"},
    ]
    (tmp_path / "models.json").write_text(json.dumps({"models": listed}))
    pool = ModelPool(models_dir=str(tmp_path))
    engine = await pool.language("mine", InferenceEngine.LLAMA_CPP)
    assert asked[0]["lora"] == {"pirate": str(tmp_path / "pirate.gguf")}
    engine.release(Slot("any"))
    told = {each.name: (each.model_type, each.status) for each in pool.list()}
    assert told["pirate"] == ("lora", ModelStatus.LOCAL)
    assert told["gone"] == ("lora", ModelStatus.ABSENT)
    with pytest.raises(NoLanguageModel, match="of the kind lora"):
        await pool.language("pirate", InferenceEngine.LLAMA_CPP)
    with pytest.raises(ModelError, match="loaded together with its model, `mine`, `yours`"):
        await pool.load("pirate")
    await pool.close()


def test_the_speakers_of_a_voice_are_listed() -> None:
    told = {each.name: each.voices for each in ModelPool().list()}
    assert told["espeak"][:2] == ("en-us", "en-us+m1")
    assert told["smollm2-135m"] == ()
