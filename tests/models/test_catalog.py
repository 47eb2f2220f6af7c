"""The catalog: consistent data, and a model is there only when it is whole."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.support.package_index import Model
from trunkline.core.faults import ConfigError
from trunkline.models import catalog

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


@pytest.mark.parametrize("entry", catalog.entries(), ids=lambda entry: entry.name)
def test_every_entry_is_complete_and_pinned(entry: catalog.CatalogEntry) -> None:
    assert entry.description.endswith(".")
    assert entry.licence
    assert entry.context is not None or entry.kind != "llm"
    for file in entry.files:
        assert SHA256.fullmatch(file.sha256)
        assert os.path.basename(file.name) == file.name
        for part in file.parts:
            assert SHA256.fullmatch(part.wheel_sha256)
            assert part.wheel.endswith(f"-{part.tag}.whl")
            assert part.size > 0
            assert part.wheel_size > 0
            assert not part.member.startswith("/")


def test_names_and_contents_are_unique() -> None:
    assert len({entry.name for entry in catalog.entries()}) == len(catalog.entries())
    assert len({entry.key for entry in catalog.entries()}) == len(catalog.entries())


def test_the_parts_of_the_larger_model_join_to_its_size() -> None:
    entry = catalog.find("qwen2.5-coder-1.5b")
    assert len(entry.files[0].parts) == 22
    assert entry.size == 1_117_320_768
    assert "not known" in entry.description


def test_an_unknown_name_is_an_error_that_suggests_another() -> None:
    with pytest.raises(ConfigError, match=r"Did you mean `smollm2-135m`\?"):
        catalog.find("smollm2")
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
