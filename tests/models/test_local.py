"""A language model in this process: what is found out before it is loaded."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from trunkline.base.config import user_file
from trunkline.base.extras import install_hint
from trunkline.base.vocabulary import LEAST_WINDOW
from trunkline.core.faults import ConfigError, ProviderError, TooLong
from trunkline.models import catalog, installed, local_gguf
from trunkline.models.llama import Llama
from trunkline.models.load_options import LoadOptions
from trunkline.models.local import LocalModel
from trunkline.models.providers import ModelSettings


def settings(model: str | None = None, **compat: Any) -> ModelSettings:
    return ModelSettings("local", model=model, compat=compat)


def gguf_file(path: Path, *members: tuple[str, int, bytes]) -> Path:
    body = b"".join(
        struct.pack("<Q", len(key)) + key.encode() + struct.pack("<I", kind) + value for key, kind, value in members
    )
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, len(members)) + body)
    return path


def a_string(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


def test_a_model_that_was_not_pulled_is_an_error_that_says_how_to_get_it() -> None:
    with pytest.raises(ConfigError, match="Get it with `trunkline models pull smollm2-135m`"):
        LocalModel(settings())


def test_an_unknown_model_is_an_error_that_suggests_another() -> None:
    with pytest.raises(ConfigError, match="Did you mean `smollm2-135m`"):
        LocalModel(settings("smollm2-135"))


def test_a_file_that_is_not_there_or_no_model_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        LocalModel(settings(str(tmp_path / "a.gguf")))
    (tmp_path / "a.gguf").write_bytes(b"something else")
    with pytest.raises(ConfigError, match="does not begin like a GGUF file"):
        LocalModel(settings(str(tmp_path / "a.gguf")))
    (tmp_path / "a.gguf").write_bytes(b"GGUF\x03")
    with pytest.raises(ConfigError, match="ends too soon"):
        LocalModel(settings(str(tmp_path / "a.gguf")))


def test_without_the_engine_the_error_says_how_to_get_it(tmp_path: Path) -> None:
    path = gguf_file(tmp_path / "a.gguf")
    with mock.patch.object(installed, "find_spec", return_value=None):
        with pytest.raises(ConfigError, match=re.escape(install_hint("local"))):
            LocalModel(settings(str(path)))


def test_who_lacks_engine_and_model_is_told_of_both_in_the_order_in_which_they_are_needed() -> None:
    with mock.patch.object(installed, "find_spec", return_value=None), pytest.raises(ConfigError) as caught:
        LocalModel(settings())
    told = str(caught.value)
    assert 0 < told.index(install_hint("local")) < told.index("trunkline models pull smollm2-135m")


@pytest.mark.parametrize(
    "error",
    [
        {"type": "exceed_context_size_error", "code": 400, "n_prompt_tokens": 9000, "n_ctx": 8192, "message": "m"},
        {"type": "server_error", "code": 500, "message": "Context size has been exceeded."},
    ],
)
async def test_what_does_not_fit_into_the_window_is_told_apart(error: dict[str, Any]) -> None:
    async def failure(error: dict[str, Any]) -> Exception:
        """What becomes of an engine that says this and nothing else."""
        server = mock.Mock(chat=lambda body, take: take({"error": error}))
        model = Llama("m", server, window=8192)
        with pytest.raises(ProviderError) as caught:
            [piece async for piece in model.chat({})]
        await model.close()
        return caught.value

    found = await failure(error)
    assert isinstance(found, TooLong)
    assert found.retryable is False
    assert not isinstance(await failure({"code": 500, "message": "something else"}), TooLong)


@pytest.mark.parametrize("value", [0, -1, "many", True, 1.5])
def test_a_setting_that_is_no_count_is_an_error(tmp_path: Path, value: Any) -> None:
    path = gguf_file(tmp_path / "a.gguf")
    with pytest.raises(ConfigError, match="`threads` must be a whole number"):
        LocalModel(settings(str(path), threads=value))


@pytest.mark.parametrize(("key", "value"), [("n_ctx", 1), ("n_ctx", 1 << 40), ("threads", 100_000)])
def test_a_count_that_would_end_the_process_is_an_error(tmp_path: Path, key: str, value: int) -> None:
    path = gguf_file(tmp_path / "a.gguf")
    with pytest.raises(ConfigError, match=f"`{key}` must be a whole number from"):
        LocalModel(settings(str(path), **{key: value}))


def test_weights_that_claim_a_window_of_one_token_do_not_end_the_process(tmp_path: Path) -> None:
    path = gguf_file(tmp_path / "a.gguf", ("llama.context_length", 4, struct.pack("<I", 1)))
    assert LocalModel(settings(str(path))).context_window == LEAST_WINDOW


def test_what_is_said_of_a_model_goes_before_what_is_said_of_all_local_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(gguf_file(tmp_path / "a.gguf", ("llama.context_length", 4, struct.pack("<I", 4096))))
    assert LocalModel(settings(path, n_ctx=1024)).context_window == 1024
    configured = Path(user_file())
    configured.parent.mkdir(parents=True, exist_ok=True)
    configured.write_text(f'[models."{path}"]\ncontext = 512\nkv_cache_type = "q8_0"\n', encoding="utf-8")
    model = LocalModel(settings(path, n_ctx=1024))
    assert model.context_window == 512
    assert model._options == LoadOptions(context=512, kv_cache_type="q8_0")
    monkeypatch.setenv("TRUNKLINE_MODELS_CONTEXT", "255")
    with pytest.raises(ConfigError, match="TRUNKLINE_MODELS_CONTEXT: must be a whole number of tokens from 256"):
        LocalModel(settings(path))


def test_what_a_token_of_the_window_takes_is_reckoned_from_the_file(tmp_path: Path) -> None:
    numbers = {"block_count": 30, "context_length": 8192, "embedding_length": 576, "attention.head_count": 9}
    members = [(f"llama.{name}", 4, struct.pack("<I", number)) for name, number in numbers.items()]
    path = str(gguf_file(tmp_path / "a.gguf", *members))
    assert local_gguf.facts(path) == local_gguf.GgufFacts(8192, 30, 2 * 30 * 9 * 64 * 2)
    fewer = ("llama.attention.head_count_kv", 4, struct.pack("<I", 3))
    path = str(gguf_file(tmp_path / "b.gguf", *members, fewer))
    assert local_gguf.facts(path).kv_bytes == catalog.find("smollm2-135m").kv_bytes
    assert local_gguf.facts(str(gguf_file(tmp_path / "c.gguf", *members[:2]))).kv_bytes is None


def test_the_window_is_read_from_the_file(tmp_path: Path) -> None:
    path = gguf_file(
        tmp_path / "a.gguf",
        ("general.name", 8, a_string(b"x")),
        ("general.languages", 9, struct.pack("<IQ", 8, 1) + a_string(b"en")),
        ("llama.context_length", 4, struct.pack("<I", 512)),
        ("llama.block_count", 4, struct.pack("<I", 3)),
    )
    assert local_gguf.context_length(str(path)) == 512


def test_a_file_that_tells_its_window_late_or_never_has_none(tmp_path: Path) -> None:
    words = struct.pack("<IQ", 8, 10**12)
    late = ("tokens", 9, words), ("llama.context_length", 4, struct.pack("<I", 512))
    assert local_gguf.context_length(str(gguf_file(tmp_path / "late.gguf", *late))) is None
    assert local_gguf.context_length(str(gguf_file(tmp_path / "never.gguf"))) is None
    nested = ("x", 9, struct.pack("<IQ", 9, 10) * 1000)
    assert local_gguf.context_length(str(gguf_file(tmp_path / "nested.gguf", nested))) is None
