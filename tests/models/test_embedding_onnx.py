"""Sentence embeddings: the real small model, pulled once for all runs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from unittest import mock

import pytest

from tests.conftest import require
from tests.support.local_model import SHARED_CACHE, THREADS, TIMEOUT_SECONDS
from trunkline.core.faults import Fault, ProviderError
from trunkline.models import catalog, fetch
from trunkline.models.embedding_onnx import OnnxEmbedding

pytestmark = [pytest.mark.slow, pytest.mark.timeout(TIMEOUT_SECONDS)]

NAME = "minilm-l6"


@cache
def onnx_path() -> str:
    """The file of the model. Where it cannot be had, the test does not run.

    Kept for all tests of a process, so in a loop of its own.
    """
    for package in ("onnxruntime", "tokenizers"):
        require(package, find_spec(package) is not None, "pip install 'trunkline[embeddings]'")
    with mock.patch.dict(os.environ, {"TRUNKLINE_CACHE": SHARED_CACHE}):
        os.environ.pop("XDG_CONFIG_HOME", None)
        try:
            return asyncio.run(fetch.pull(catalog.find(NAME)))
        except (Fault, OSError) as error:
            reason = str(error)
    require(f"the model {NAME}", False, reason)
    raise AssertionError


@pytest.fixture(scope="module")
def path() -> str:
    return onnx_path()


@pytest.fixture
async def engine(path: str) -> AsyncIterator[OnnxEmbedding]:
    engine = await OnnxEmbedding.load(NAME, path, threads=THREADS)
    yield engine
    await engine.close()


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    return float(sum(x * y for x, y in zip(one, other, strict=True)))


async def test_texts_that_mean_the_same_are_near(engine: OnnxEmbedding) -> None:
    assert engine.dimensions == 384
    vectors = await engine.embed(["Where can I buy a sword?", "the smith sells blades", "It will rain tomorrow."])
    assert all(len(vector) == 384 and cosine(vector, vector) == pytest.approx(1, abs=1e-4) for vector in vectors)
    question, near, far = vectors
    assert cosine(question, near) > cosine(question, far) + 0.2


async def test_a_text_has_one_vector_whoever_is_beside_it(engine: OnnxEmbedding) -> None:
    texts = [f"the number {number} {'and more ' * (number % 7)}" for number in range(40)]
    together = await engine.embed(texts)
    assert len(together) == 40
    (alone,) = await engine.embed([texts[33]])
    assert cosine(alone, together[33]) > 0.99
    assert cosine(alone, together[33]) > max(cosine(alone, each) for each in together[:33])


async def test_any_text_can_be_embedded(engine: OnnxEmbedding) -> None:
    vectors = await engine.embed(["", "\ud800", "word " * 50_000, "\0"])
    assert [cosine(vector, vector) == pytest.approx(1, abs=1e-4) for vector in vectors] == [True] * 4
    assert await engine.embed([]) == []


async def test_an_engine_that_is_closed_says_so(engine: OnnxEmbedding) -> None:
    await engine.close()
    await engine.close()
    with pytest.raises(ProviderError, match="`minilm-l6` was unloaded"):
        await engine.embed(["a"])


async def test_a_file_that_is_no_model_is_an_error(tmp_path: Path, path: str) -> None:
    (tmp_path / "model.onnx").write_bytes(b"nothing")
    with pytest.raises(ProviderError, match=r"`model\.onnx` cannot be loaded"):
        await OnnxEmbedding.load(NAME, str(tmp_path / "model.onnx"))
