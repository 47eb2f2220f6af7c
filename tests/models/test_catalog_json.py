"""The dialects of `models.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.lora import write_adapter
from trunkline.core.faults import ConfigError
from trunkline.core.graph.description import LogitBias, LoraAdapter
from trunkline.core.graph.models import SamplingParams
from trunkline.models.catalog_entry import CatalogEntry, ModelFile
from trunkline.models.catalog_json import loose, read_catalog
from trunkline.models.load_options import LoadOptions


def read(*models: Any) -> tuple[CatalogEntry, ...]:
    return read_catalog(json.dumps({"models": models}).encode())


def one(**record: Any) -> CatalogEntry:
    (entry,) = read({"name": "m"} | record)
    return entry


def test_a_full_entry_is_read() -> None:
    entry = one(
        purpose="embedding",
        audience="public",
        tool_call_format="llama3",
        default_sampling={"temperature": 0, "top_k": 40, "unheard_of": 1},
        variants=[
            {
                "engine": "llama-cpp",
                "huggingface_repo": "owner/repo",
                "files": ["a.gguf", "sub/b.gguf"],
                "context_size": 4096,
                "sha256": ["A" * 64, "b" * 64],
            }
        ],
    )
    assert entry == CatalogEntry(
        "m",
        kind="embedding",
        audience="public",
        tool_call_format="llama3",
        sampling=SamplingParams(temperature=0.0, top_k=40),
        context=4096,
        files=(ModelFile("a.gguf", "a" * 64), ModelFile("sub/b.gguf", "b" * 64)),
        source="owner/repo",
    )


@pytest.mark.parametrize(
    ("record", "field", "value"),
    [
        ({"type": "Embedding"}, "kind", "embedding"),
        ({}, "kind", "llm"),
        ({"purpose": "stt"}, "kind", "stt"),
        ({"local_path": "/models/mine.gguf"}, "local_path", "/models/mine.gguf"),
        ({"variants": [{"engine": "LlamaCpp", "path": "old.gguf"}]}, "path", "old.gguf"),
        ({"variants": [{"source": "o/r", "file": "f.gguf"}]}, "files", (ModelFile("f.gguf"),)),
        ({"variants": [{"source": "https://h/x/f.gguf?y=1"}]}, "files", (ModelFile("f.gguf"),)),
        ({"variants": [{"engine": 1, "tool_call_format": "mistral"}]}, "tool_call_format", "mistral"),
        ({"variants": [{"engine": "TensorRT-LLM", "path": "a"}, {"engine": "llama_cpp", "path": "b"}]}, "path", "b"),
        ({"variants": [{"engine": "openai", "url": "http://h/v1/"}]}, "urls", ("http://h/v1",)),
        (
            {"engine": "openai", "urls": ["http://h/v1", " http://g/v1/ ", "http://h/v1/"]},
            "urls",
            ("http://h/v1", "http://g/v1"),
        ),
        ({"engine": "openai", "url": "http://h/v1", "max_concurrent": 8}, "max_concurrent", 8),
        ({"engine": "openai", "url": "http://h/v1"}, "max_concurrent", 0),
    ],
)
def test_every_dialect_is_understood(record: dict[str, Any], field: str, value: object) -> None:
    assert getattr(one(**record), field) == value


def test_how_a_model_is_loaded_and_what_it_is_good_for_is_read() -> None:
    entry = one(
        good_for="Heroes",
        licence="MIT",
        languages=["en", "de"],
        variants=[{"file": "a.gguf", "gpu_layers": 20, "threads": 4, "kv_cache_type": "q8_0"}],
    )
    assert entry.options == LoadOptions(gpu_layers=20, threads=4, kv_cache_type="q8_0")
    assert (entry.good_for, entry.licence, entry.languages) == ("Heroes", "MIT", ("en", "de"))


def test_an_engine_that_is_not_here_is_listed() -> None:
    assert one(variants=[{"engine": "sherpa-onnx", "path": "x"}]).engine == "sherpa-onnx"


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({"name": ""}, "no name"),
        ({"name": 3}, "`name` is not a string"),
        ({"variants": "x"}, "`variants` is not a list"),
        ({"variants": [{"source": "no repository"}]}, "neither `owner/repository` nor a URL"),
        ({"variants": [{"huggingface_repo": "o/r"}]}, "which `files`"),
        ({"gpu_layers": -2}, "`gpu_layers` must be a whole number of layers"),
        ({"threads": 0}, "`threads` must be a whole number from 1 to 256"),
        ({"kv_cache_type": "q9"}, "`kv_cache_type` must be one of"),
        ({"languages": [3]}, "`languages` is not a list of strings"),
        ({"files": ["../x"]}, "is not a file name"),
        ({"files": ["/etc/passwd"]}, "is not a file name"),
        ({"files": ["a"], "sha256": "short"}, "`sha256`"),
        ({"context_size": -1}, "`context_size` is not a whole number of 0 or more"),
        ({"default_sampling": {"temperature": "warm"}}, "`default_sampling.temperature`"),
        ({"default_sampling": {"top_k": 0.5}}, "`default_sampling.top_k`"),
        ({"variants": [{"engine": "openai"}]}, "needs an `url`"),
        ({"engine": "openai", "urls": ["http://h/v1", "gpu2:8000"]}, "`gpu2:8000` is not the `url` of a server"),
        ({"engine": "openai", "urls": ["http://me:secret@h:x/v1"]}, "`http://h:x/v1` is not the `url` of a server"),
        ({"engine": "openai", "urls": [f"http://h/{n}/v1" for n in range(65)]}, "more than 64 `urls`"),
        ({"engine": "openai", "urls": {"a": 1}}, "`urls` is not a list of strings"),
        ({"engine": "openai", "url": "http://h/v1", "max_concurrent": -1}, "`max_concurrent` is not a whole number"),
    ],
)
def test_what_cannot_be_used_is_named(record: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        one(**record)


@pytest.mark.parametrize("data", [b"", b"{", b"3", b'{"models": {}}', b'{"models": [3]}', b"\xff"])
def test_a_catalog_that_is_none_is_an_error(data: bytes) -> None:
    with pytest.raises(ConfigError, match=r"models\.json"):
        read_catalog(data)


def test_two_models_of_one_name_are_an_error() -> None:
    with pytest.raises(ConfigError, match="two models `m`"):
        read({"name": "m"}, {"name": "m"})


def test_an_adapter_names_the_models_that_it_is_for() -> None:
    entry = one(type="lora", base_model="mine", local_path="pirate.gguf")
    assert (entry.kind, entry.bases) == ("lora", ("mine",))
    assert one(type="LoRA", base_model=["mine", "yours"]).bases == ("mine", "yours")


def test_a_model_s_own_answers_may_have_an_end_a_form_words_and_adapters() -> None:
    given = {"stop": ["END"], "json_schema": {"type": "object"}, "logit_bias": {"no": -5}, "lora": {"pirate": 0.5}}
    assert one(default_sampling=given).sampling == SamplingParams(
        stop=("END",),
        json_schema='{"type":"object"}',
        logit_bias=(LogitBias("no", -5.0),),
        lora=(LoraAdapter("pirate", 0.5),),
    )
    for wrong in ({"stop": [1]}, {"json_schema": "x"}, {"logit_bias": ["no"]}, {"lora": {"pirate": "much"}}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            one(default_sampling=wrong)


def test_an_adapter_that_lies_in_the_folder_is_not_offered_as_a_model(tmp_path: Path) -> None:
    write_adapter(tmp_path / "pirate.gguf")
    (tmp_path / "mine.gguf").write_bytes(b"GGUF")
    assert [entry.name for entry in loose(str(tmp_path))] == ["mine"]
