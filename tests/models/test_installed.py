"""Whether what runs a model is installed."""

from __future__ import annotations

import pytest

from trunkline.base.extras import install_hint
from trunkline.models import catalog, installed
from trunkline.models.catalog_entry import LLAMA, ONNX, OPENAI
from trunkline.models.installed import lacking_engines, missing_extra


def test_every_model_of_the_catalog_has_an_engine_that_an_extra_brings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "find_spec", lambda module: None)
    assert [entry.name for entry in catalog.ENTRIES if missing_extra(entry.engine) is None] == []
    assert missing_extra(OPENAI) is None


def test_all_engines_that_are_missing_come_with_one_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "find_spec", lambda module: None)
    assert lacking_engines([LLAMA, ONNX, LLAMA]) == (
        "The engines for local models and for embeddings are not installed. "
        f"Add them with `{install_hint('local,embeddings')}`."
    )
    assert lacking_engines([ONNX]) == (
        f"The engine for embeddings is not installed. Add it with `{install_hint('embeddings')}`."
    )
    monkeypatch.setattr(installed, "find_spec", lambda module: module)
    assert lacking_engines([LLAMA, ONNX]) is None
