"""llama.cpp in this process: what happens around the answers."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.local_model import THREADS, TIMEOUT_SECONDS, model_path
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base.vocabulary import KV_CACHE_TYPES
from trunkline.core.faults import ProviderError
from trunkline.models import llama_server, local_gguf
from trunkline.models.llama_server import LlamaServer
from trunkline.models.load_options import LoadedAs, LoadOptions

# On one core the engine's own thread has not begun by the time that the model is there.
LOAD_AND_LET_GO = """
import os, sys
from trunkline.models.llama_server import LlamaServer

if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
for _ in range(3):
    LlamaServer(sys.argv[1], 256, threads=1)
"""


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.timeout(TIMEOUT_SECONDS)
def test_a_model_can_be_let_go_as_soon_as_it_is_loaded() -> None:
    command = [sys.executable, "-c", LOAD_AND_LET_GO, model_path()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.slow
@pytest.mark.timeout(TIMEOUT_SECONDS)
@pytest.mark.parametrize("kind", KV_CACHE_TYPES)
def test_a_model_answers_with_every_kind_of_cache_and_tells_which(kind: str) -> None:
    server = LlamaServer(model_path(), 256, threads=THREADS, options=LoadOptions(kv_cache_type=kind))
    assert server.used == LoadedAs(0, THREADS, 256, kind, "cpu")
    pieces: list[str] = []

    def take(piece: dict[str, Any]) -> bool:
        pieces.extend(choice.get("delta", {}).get("content") or "" for choice in piece["choices"])
        return False

    server.chat({"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 4, "stream": True}, take)
    assert "".join(pieces)


@pytest.mark.slow
@pytest.mark.timeout(TIMEOUT_SECONDS)
def test_what_a_model_uses_is_what_it_was_asked_for_or_what_the_engine_has_made_of_it() -> None:
    assert LlamaServer(model_path(), 300, 2, threads=THREADS).used == LoadedAs(0, THREADS, 512, "f16", "cpu")
    asked = LlamaServer(model_path(), 256, threads=3, options=LoadOptions(threads=THREADS, kv_cache_type="q8_0"))
    assert (asked.used.threads, asked.used.kv_cache_type) == (THREADS, "q8_0")


@pytest.mark.slow
@pytest.mark.timeout(TIMEOUT_SECONDS)
def test_layers_for_a_graphics_card_that_is_not_there_are_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        server = LlamaServer(model_path(), 256, threads=THREADS, options=LoadOptions(gpu_layers=20))
    assert (server.used.gpu_layers, server.used.device) == (0, "cpu")
    (told,) = [record.getMessage() for record in caplog.records if record.name == llama_server.__name__]
    assert "loaded without a graphics card, although `gpu_layers` is 20" in told
    caplog.clear()
    LlamaServer(model_path(), 256, threads=THREADS, options=LoadOptions(gpu_layers=0))
    assert not caplog.records


def test_a_card_that_is_there_takes_what_it_is_asked_to_and_all_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """No card is needed to reckon what one has taken."""
    xllamacpp = pytest.importorskip("xllamacpp")
    kinds = xllamacpp.ggml_backend_dev_type
    devices = [
        {"name": "CUDA0", "description": "Some Card", "type": kinds.GGML_BACKEND_DEVICE_TYPE_GPU},
        {"name": "CPU", "description": "Some processor", "type": kinds.GGML_BACKEND_DEVICE_TYPE_CPU},
    ]
    monkeypatch.setattr(xllamacpp, "get_device_info", lambda: devices)
    monkeypatch.setattr(local_gguf, "facts", lambda path: local_gguf.GgufFacts(layers=30))
    assert llama_server._card("m", LoadOptions()) == "Some Card"
    assert llama_server._card("m", LoadOptions(gpu_layers=0)) == ""
    for asked, taken in ((None, 31), (-1, 31), (20, 20), (99, 31)):
        assert llama_server._gpu_layers("m", LoadOptions(gpu_layers=asked)) == taken


def test_a_file_that_cannot_be_loaded_says_what_it_was_to_be_loaded_with(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    (tmp_path / "bad.gguf").write_bytes(b"GGUF")
    with pytest.raises(ProviderError, match="Is it a whole GGUF file of a model\\?"):
        LlamaServer(str(tmp_path / "bad.gguf"), 256, threads=THREADS)
    options = LoadOptions(kv_cache_type="q4_0")
    with pytest.raises(ProviderError, match="go with `kv_cache_type` q4_0, and with 256 tokens"):
        LlamaServer(str(tmp_path / "bad.gguf"), 256, threads=THREADS, options=options)
