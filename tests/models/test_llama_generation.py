"""What is asked of an answer, with a real model: its end, its form, its words, its seed, and adapters."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from tests.support.local_model import MODEL, THREADS, model_path
from tests.support.lora import write_adapter
from trunkline.core.faults import ProviderError
from trunkline.core.graph.description import LogitBias, LoraAdapter
from trunkline.core.graph.models import SamplingParams
from trunkline.models.engines import ChatMessage, Prompt
from trunkline.models.generating import generated
from trunkline.models.llama_language import LlamaLanguage

pytestmark = pytest.mark.long

COLD = SamplingParams(temperature=0.0, max_tokens=40)
MOOD = {
    "type": "object",
    "properties": {"mood": {"enum": ["calm", "angry"]}, "words": {"type": "integer", "minimum": 0}},
    "required": ["mood", "words"],
}


@pytest.fixture
def weights() -> str:
    return model_path()


@pytest.fixture
async def engine(weights: str, tmp_path: Path) -> AsyncIterator[LlamaLanguage]:
    lora = {"odd": write_adapter(tmp_path / "odd.gguf")}
    made = await LlamaLanguage.load(MODEL, weights, window=1024, places=1, threads=THREADS, lora=lora)
    yield made
    await made.close()


async def told(engine: LlamaLanguage, text: str, sampling: SamplingParams, *, stream: bool = True) -> list[str]:
    prompt = Prompt((ChatMessage("user", text),))
    pieces = generated(engine, MODEL, prompt, sampling, stream=stream, grammar=None, slot=None)
    async with aclosing(pieces) as answer:
        return [piece async for piece in answer if piece]


async def said(engine: LlamaLanguage, text: str, sampling: SamplingParams, **options: Any) -> str:
    return "".join(await told(engine, text, sampling, **options))


async def test_answers_end_have_a_form_a_seed_and_words_and_adapters_change_them(engine: LlamaLanguage) -> None:
    usual = await said(engine, "Tell me about lions.", COLD)
    word = next(each for each in usual.split() if len(each) > 2 and usual.find(each) > 5)
    # It ends in front of the text, of which no piece shows a part.
    for stream in (True, False):
        short = await said(engine, "Tell me about lions.", COLD.replace(stop=(word,)), stream=stream)
        assert short == usual[: usual.find(word)]

    # It is JSON that fits, and comes in pieces.
    pieces = await told(engine, "How do you feel?", COLD.replace(json_schema=json.dumps(MOOD), max_tokens=80))
    value = json.loads("".join(pieces))
    assert value["mood"] in ("calm", "angry")
    assert type(value["words"]) is int
    assert len(pieces) > 3

    # The same seed gives the same, and another one something else.
    warm = SamplingParams(temperature=1.5, max_tokens=24, seed=7)
    first = await said(engine, "Tell me a story.", warm)
    assert await said(engine, "Tell me a story.", warm) == first
    assert await said(engine, "Tell me a story.", warm.replace(seed=8)) != first

    # A word that is forbidden is not said.
    question = "Say yes or no: is water wet?"
    plain = await said(engine, question, COLD)
    start = plain.split()[0].strip(".,!")
    without = await said(engine, question, COLD.replace(logit_bias=(LogitBias(start, -100.0),)))
    assert start in plain
    assert start not in without

    # An adapter counts as much as is asked for, in each request.
    odd = COLD.replace(lora=(LoraAdapter("odd", 10.0),))
    changed = await said(engine, "Tell me about lions.", odd)
    assert changed != usual
    assert await said(engine, "Tell me about lions.", odd) == changed
    assert await said(engine, "Tell me about lions.", COLD.replace(lora=(LoraAdapter("odd", 0.0),))) == usual
    assert await said(engine, "Tell me about lions.", COLD) == usual
    assert engine.refusal(odd) is None
    assert engine.refusal(COLD.replace(lora=(LoraAdapter("none"),))) == (
        f"The model `{MODEL}` has no adapter `none`: it has `odd`."
    )


async def test_an_adapter_of_another_model_is_not_loaded(weights: str, tmp_path: Path) -> None:
    lora = {"foreign": write_adapter(tmp_path / "foreign.gguf", width=64)}
    with pytest.raises(ProviderError, match=r"foreign\.gguf") as refused:
        await LlamaLanguage.load(MODEL, weights, window=256, threads=THREADS, lora=lora)
    assert refused.value.hint == "Were its adapters made for this very model?"
