"""The catalog: consistent data, and a model is there only when it is whole."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.support.package_index import Model
from trunkline.core.faults import ConfigError
from trunkline.models import catalog
from trunkline.models.catalog_entry import ENGINE_BYTES, USUAL_WINDOW
from trunkline.models.naming import REPOSITORY

SHA256 = re.compile(r"[0-9a-f]{64}")


def place_files(model: Model, data: bytes | None = None) -> Path:
    path = Path(catalog.place(model.entry)) / model.entry.files[0].name
    path.parent.mkdir(parents=True)
    path.write_bytes(model.data if data is None else data)
    return path


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Model:
    model = Model()
    monkeypatch.setattr(catalog, "ENTRIES", (model.entry,))
    return model


@pytest.mark.parametrize("entry", catalog.ENTRIES, ids=lambda entry: entry.name)
def test_every_entry_says_all_that_somebody_who_chooses_wants_to_know(entry: catalog.CatalogEntry) -> None:
    assert entry.description.endswith(".")
    assert entry.good_for
    assert not entry.good_for.endswith(".")
    assert entry.licence
    assert entry.expected or entry.packaged
    assert entry.memory > entry.expected or entry.measured
    assert entry.memory
    assert entry.context is not None or entry.kind != "llm"
    assert entry.kind == "vad" or all(re.fullmatch("[a-z]{2}", language) for language in entry.languages)
    assert entry.kind == "vad" or entry.languages


@pytest.mark.parametrize("entry", catalog.ENTRIES, ids=lambda entry: entry.name)
def test_every_entry_is_pinned_or_comes_from_a_hub_that_says_what_its_files_are(entry: catalog.CatalogEntry) -> None:
    if not entry.is_pinned:
        assert REPOSITORY.fullmatch(entry.source)
        assert entry.is_about
        # No hash that nobody could check: the hub's is asked for.
        assert not any(file.sha256 or file.length for file in entry.files)
        return
    assert entry.key
    for file in entry.files:
        assert SHA256.fullmatch(file.sha256)
        assert os.path.basename(file.name) == file.name
        for part in file.parts:
            assert SHA256.fullmatch(part.wheel_sha256)
            assert part.wheel.endswith(f"-{part.tag}.whl")
            assert part.size > 0
            assert part.wheel_size > 0
            assert not part.member.startswith("/")


def test_there_is_something_to_choose_from_for_every_purpose() -> None:
    counts = Counter(entry.kind for entry in catalog.ENTRIES)
    assert counts["llm"] >= 12
    assert counts["embedding"] >= 3
    assert counts["stt"] >= 5
    assert counts["tts"] >= 6


def test_no_two_names_mean_the_same_files() -> None:
    assert len({entry.name for entry in catalog.ENTRIES}) == len(catalog.ENTRIES)
    assert len({entry.key or entry.origin for entry in catalog.ENTRIES}) == len(catalog.ENTRIES)
    hashes = [file.sha256 for entry in catalog.ENTRIES for file in entry.files[:1] if file.sha256]
    assert len(set(hashes)) == len(hashes)


def test_memory_is_the_files_the_window_and_the_engine_or_what_was_measured() -> None:
    entry = catalog.CatalogEntry("m", context=131_072, about=1_000_000_000, kv_bytes=1000)
    assert entry.memory == 1_000_000_000 + USUAL_WINDOW * 1000 + ENGINE_BYTES
    assert entry.replace(context=1000).memory == 1_000_000_000 + 1000 * 1000 + ENGINE_BYTES
    assert entry.replace(measured=7).memory == 7
    # Of a language model that nobody knows the inside of, its memory is not known either.
    assert entry.replace(kv_bytes=0).memory == 0
    assert entry.replace(kv_bytes=0, kind="embedding").memory == 1_000_000_000 + ENGINE_BYTES
    assert entry.replace(about=0).memory == 0


def test_the_parts_of_the_larger_model_join_to_its_size() -> None:
    entry = catalog.find("qwen2.5-coder-1.5b")
    assert len(entry.files[0].parts) == 22
    assert entry.size == 1_117_320_768
    assert "not known" in entry.description


def test_an_unknown_name_is_an_error_that_suggests_another() -> None:
    with pytest.raises(ConfigError, match=r"Did you mean `smollm2-135m`\?"):
        catalog.find("smollm2-135")
    with pytest.raises(ConfigError, match="`trunkline models list` shows those there are"):
        catalog.find("zzz")


def test_a_model_that_was_not_pulled_is_not_installed(tiny: Model) -> None:
    assert catalog.path(catalog.find("tiny")) is None


def test_a_model_is_found_by_its_first_file(tiny: Model) -> None:
    path = place_files(tiny)
    assert catalog.path(catalog.find("tiny")) == str(path)


def test_a_file_of_another_size_does_not_count(tiny: Model) -> None:
    place_files(tiny, tiny.data[:-1])
    assert catalog.path(catalog.find("tiny")) is None


def test_another_pin_is_another_place(tiny: Model) -> None:
    file = catalog.ModelFile("tiny.gguf", "0" * 64, tiny.entry.files[0].parts)
    other = catalog.CatalogEntry("tiny", "llm", "Other bytes.", "none", (file,))
    assert catalog.place(other) != catalog.place(tiny.entry)
