"""How a model is to be loaded: variables, files, entries, in this order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trunkline.base.config import user_file
from trunkline.core.faults import ConfigError
from trunkline.models.load_configured import options_for
from trunkline.models.load_options import LoadOptions

NAME = "Qwen/Qwen2.5-0.5B-Instruct-GGUF"


def configure(text: str) -> None:
    path = Path(user_file())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_a_model_of_which_nobody_says_anything_has_no_options() -> None:
    assert options_for("a") == LoadOptions()


def test_a_file_says_how_a_model_is_loaded_by_any_of_its_names() -> None:
    configure(
        f'[models."{NAME}"]\ngpu_layers = -1\nthreads = 6\ncontext = 4096\nkv_cache_type = "q8_0"\n'
        "[models.other]\nthreads = 1\n"
    )
    assert options_for("short", NAME) == LoadOptions(gpu_layers=-1, threads=6, context=4096, kv_cache_type="q8_0")
    assert options_for("other", NAME) == LoadOptions(threads=1)
    assert options_for("third") == LoadOptions()


def test_a_variable_goes_before_the_file_for_all_models(monkeypatch: pytest.MonkeyPatch) -> None:
    configure("[models.a]\nthreads = 6\ncontext = 4096\n")
    monkeypatch.setenv("TRUNKLINE_MODELS_THREADS", " 2 ")
    monkeypatch.setenv("TRUNKLINE_MODELS_KV_CACHE_TYPE", "q4_0")
    assert options_for("a") == LoadOptions(threads=2, context=4096, kv_cache_type="q4_0")
    assert options_for("b") == LoadOptions(threads=2, kv_cache_type="q4_0")


def test_the_file_of_a_workspace_counts_only_if_it_is_trusted(tmp_path: Path) -> None:
    (tmp_path / "trunkline.toml").write_text("[models.a]\nthreads = 3\n", encoding="utf-8")
    assert options_for("a", workspace=str(tmp_path)) == LoadOptions()
    configure(f"trust = [{json.dumps(str(tmp_path))}]\n")
    assert options_for("a", workspace=str(tmp_path)) == LoadOptions(threads=3)


@pytest.mark.parametrize(
    ("key", "least", "most"),
    [("gpu_layers", -1, 1000), ("threads", 1, 256), ("context", 256, 1 << 24)],
)
def test_numbers_have_bounds_that_are_told(monkeypatch: pytest.MonkeyPatch, key: str, least: int, most: int) -> None:
    for good in (least, most):
        configure(f"[models.a]\n{key} = {good}\n")
        assert getattr(options_for("a"), key) == good
    for bad in (least - 1, most + 1, '"many"', "true", "1.5"):
        configure(f"[models.a]\n{key} = {bad}\n")
        with pytest.raises(ConfigError, match=rf"line 2.*`models\.a\.{key}` must be .* from {least} to {most}"):
            options_for("a")
    configure("")
    for bad in (least - 1, most + 1, "many"):
        monkeypatch.setenv(f"TRUNKLINE_MODELS_{key.upper()}", str(bad))
        with pytest.raises(ConfigError, match=rf"TRUNKLINE_MODELS_{key.upper()}: must be .*, not `{bad}`"):
            options_for("a")


def test_a_kind_of_cache_that_there_is_not_is_an_error_that_lists_those_that_there_are() -> None:
    configure('[models.a]\nkv_cache_type = "q9"\n')
    with pytest.raises(ConfigError, match=r'`models\.a\.kv_cache_type` must be one of "f32", "f16", .*"q4_0"'):
        options_for("a")


def test_what_is_said_goes_before_what_an_entry_says() -> None:
    entry = LoadOptions(gpu_layers=10, threads=4, kv_cache_type="q8_0")
    assert LoadOptions(gpu_layers=0, context=512).over(entry) == LoadOptions(0, 4, 512, "q8_0")
    assert LoadOptions().over(entry) == entry
