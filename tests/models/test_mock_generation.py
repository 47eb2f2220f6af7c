"""What the mock shows of what is asked of an answer, so that clients can be tested with it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from trunkline.core.graph.description import LogitBias, LoraAdapter
from trunkline.core.graph.models import SamplingParams
from trunkline.models.engines import ChatMessage, Prompt
from trunkline.models.generating import generated
from trunkline.models.mock_language import OPENINGS, MockLanguage

MOOD = {
    "type": "object",
    "properties": {"mood": {"enum": ["calm", "angry"]}, "says": {"type": "string"}, "times": {"type": "integer"}},
}


async def told(text: str, *, stream: bool = True, **sampling: Any) -> list[str]:
    engine = MockLanguage()
    asked = SamplingParams(**sampling)
    assert engine.refusal(asked) is None
    pieces = generated(
        engine, "mock", Prompt((ChatMessage("user", text),)), asked, stream=stream, grammar=None, slot=None
    )
    return [piece async for piece in pieces]


async def said(text: str, **options: Any) -> str:
    return "".join(await told(text, **options))


@pytest.mark.parametrize("stream", [True, False])
async def test_it_stops(stream: bool) -> None:
    assert await said("one two three four", stop=("three", "four"), stream=stream) == "You said: one two "
    # Also where the sequence comes in several of its words.
    assert await said("one two three four", stop=("two thr",), stream=stream) == "You said: one "


async def test_it_answers_with_json_that_fits_piece_by_piece() -> None:
    pieces = await told("hello", json_schema=json.dumps(MOOD))
    assert json.loads("".join(pieces)) == {"mood": "calm", "says": "hello", "times": 1}
    assert len(pieces) > 3
    assert "".join(await told("hello", json_schema=json.dumps(MOOD), max_tokens=2)) == '{"mood": "calm",'


async def test_the_seed_chooses_its_words() -> None:
    answers = [await said("hello", seed=seed) for seed in range(len(OPENINGS))]
    assert len(set(answers)) == len(OPENINGS)
    assert answers == [await said("hello", seed=seed) for seed in range(len(OPENINGS))]
    assert answers[0] == await said("hello") == "You said: hello"
    assert await said("hello", seed=1, temperature=0.0) == answers[0]


async def test_words_are_left_out_and_added() -> None:
    assert await said("a Dragon and a knight", logit_bias=(LogitBias("dragon", -5.0),)) == "You said: a and a knight"
    assert await said("hello", logit_bias=(LogitBias("sir", 5.0),)) == "You said: hello sir"


async def test_a_long_message_leaves_others_their_turn_also_where_words_are_left_out() -> None:
    ticks = 0

    async def others() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0)
            ticks += 1

    other = asyncio.create_task(others())
    # All of it is left out: nothing is said in between either.
    spoken = await said("dragon " * 20_000, stream=True, logit_bias=(LogitBias("dragon", -5.0), LogitBias("sir", 5.0)))
    other.cancel()
    assert spoken == "You said: sir"
    assert ticks > 20_000 // 256 - 2


async def test_a_limit_of_tokens_counts_those_that_are_said() -> None:
    biases = (LogitBias("dragon", -5.0), LogitBias("sir", 5.0))
    assert await said("a dragon and a knight", max_tokens=4, logit_bias=biases) == "You said: a and"


async def test_adapters_are_named() -> None:
    lora = (LoraAdapter("pirate"), LoraAdapter("grim", 0.5))
    assert await said("hello", lora=lora) == "You said: hello [pirate 1] [grim 0.5]"
