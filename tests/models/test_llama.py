"""A language model in this process: who gets which place, and the real engine with the real small model."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from random import Random

import pytest

from tests.agents.graph.helpers import agent, end, graph, take
from tests.support.faults import number
from tests.support.local_model import MODEL, THREADS, TIMEOUT_SECONDS, model_path
from tests.support.loop import at_once
from tests.support.patience import PATIENCE_SECONDS
from trunkline.agents.graph.host import LocalHost
from trunkline.core.faults import ProviderError
from trunkline.core.graph.models import SamplingParams
from trunkline.models.embedding_llama import LlamaEmbedding
from trunkline.models.engines import ChatMessage, Piece, Prompt, Slot
from trunkline.models.llama_language import LlamaLanguage
from trunkline.models.llama_slots import SlotPool
from trunkline.wires.tryll.messages import GenerateParams, SamplingOverrides, TurnStatus

PLACES = 2
COLD = SamplingParams(temperature=0.0, max_tokens=12)
ENDLESS = SamplingParams(temperature=0.0, max_tokens=2000)
LONG_SYSTEM = "You are the old keeper of the lighthouse. " * 12


def ask(text: str, system: str = "You are a helpful assistant.") -> Prompt:
    return Prompt((ChatMessage("system", system), ChatMessage("user", text)), 1)


# Places.


async def test_each_node_comes_back_to_its_own_place() -> None:
    places = SlotPool(2)
    first, second = Slot("first"), Slot("second")
    own = {slot: await places.take(slot) for slot in (first, second)}
    assert len(set(own.values())) == 2
    for place in own.values():
        places.give(place)
    for slot in (second, first):
        assert await places.take(slot) == own[slot]


async def test_a_node_waits_for_its_own_place_while_others_are_free() -> None:
    places = SlotPool(2)
    node = Slot("node")
    own = await places.take(node)
    waiting = asyncio.create_task(places.take(node))
    await asyncio.sleep(0)
    assert not waiting.done()
    other = await places.take(Slot("other"))
    assert other != own
    places.give(own)
    assert await waiting == own


async def test_a_newcomer_takes_what_nobody_owns_and_then_what_was_unused_for_longest() -> None:
    places = SlotPool(2)
    first, second, third = Slot("first"), Slot("second"), Slot("third")
    for slot in (first, second):
        places.give(await places.take(slot))
    old = await places.take(third)
    assert old == 0
    places.give(old)
    places.forget(second)
    assert await places.take(Slot("fourth")) == 1


async def test_a_place_whose_node_is_gone_is_free() -> None:
    places = SlotPool(2)
    gone, stays = Slot("gone"), Slot("stays")
    mine = await places.take(stays)
    places.give(await places.take(gone))
    places.give(mine)
    del gone
    gc.collect()
    assert await places.take(Slot("new")) != mine


async def test_those_who_wait_are_served_in_their_order() -> None:
    places = SlotPool(1)
    place = await places.take(None)
    served: list[int] = []

    async def wait(number: int) -> None:
        taken = await places.take(None)
        served.append(number)
        places.give(taken)

    waiting = [asyncio.create_task(wait(number)) for number in range(4)]
    await asyncio.sleep(0)
    waiting[1].cancel()
    places.give(place)
    await asyncio.wait(waiting)
    assert served == [0, 2, 3]
    assert places.idle == 1


async def test_a_place_given_to_somebody_who_leaves_in_that_moment_is_not_lost() -> None:
    places = SlotPool(1)
    place = await places.take(None)
    waiting = asyncio.create_task(places.take(None))
    await asyncio.sleep(0)
    places.give(place)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert places.idle == 1


# The real engine.

real = [pytest.mark.long, pytest.mark.timeout(TIMEOUT_SECONDS)]


@pytest.fixture(scope="module")
def gguf() -> str:
    return model_path()


@pytest.fixture
async def model(gguf: str) -> AsyncIterator[LlamaLanguage]:
    engine = await LlamaLanguage.load(MODEL, gguf, window=2048, places=PLACES, threads=THREADS)
    yield engine
    await engine.close()


async def answer(model: LlamaLanguage, prompt: Prompt, *, stream: bool = True, slot: Slot | None = None) -> list[str]:
    return [piece async for piece in model.generate(prompt, COLD, stream=stream, slot=slot)]


def cost(pieces: list[str]) -> tuple[int, int, int]:
    found = [piece for piece in pieces if isinstance(piece, Piece)]
    assert len(found) == len(pieces)
    return (
        sum(piece.tokens for piece in found),
        sum(piece.prompt_tokens for piece in found),
        sum(piece.cached_tokens for piece in found),
    )


@pytest.mark.slow
@pytest.mark.timeout(TIMEOUT_SECONDS)
async def test_it_answers_token_by_token_or_at_once_and_knows_the_cost(model: LlamaLanguage) -> None:
    streamed = await answer(model, ask("What is the capital of France?"))
    whole = await answer(model, ask("What is the capital of France?"), stream=False)
    assert "Paris" in "".join(streamed)
    assert whole == ["".join(streamed)]
    assert len(streamed) > 4
    tokens, prompt_tokens, _ = cost(streamed)
    assert (tokens, prompt_tokens) == cost(whole)[:2]
    assert 0 < tokens <= COLD.max_tokens
    assert prompt_tokens > 10


class TestRealModel:
    pytestmark = real

    async def test_what_a_node_has_read_stays_warm_whoever_comes_between(self, model: LlamaLanguage) -> None:
        nodes = [Slot(str(number)) for number in range(PLACES + 1)]
        systems = [f"{number} {LONG_SYSTEM}" for number in range(PLACES + 1)]
        once = SamplingParams(max_tokens=1)
        for cold in (True, False):
            for slot, system in zip(nodes, systems, strict=True):
                pieces = [piece async for piece in model.generate(ask("Hello!", system), once, stream=True, slot=slot)]
                _, read, cached = cost(pieces)
                assert (cached < read / 2) if cold else (cached > 0.9 * read)

    async def test_a_node_that_comes_back_at_once_finds_what_it_read(self, model: LlamaLanguage) -> None:
        slot, once = Slot("node"), SamplingParams(max_tokens=1)
        for cold in (True, False, False, False):
            pieces = [piece async for piece in model.generate(ask("Hello there!"), once, stream=True, slot=slot)]
            assert bool(cost(pieces)[2]) is not cold

    async def test_as_many_as_there_are_places_write_at_once_and_others_wait(self, model: LlamaLanguage) -> None:
        first = model.generate(ask("Tell me a very long story."), ENDLESS, stream=True)
        second = model.generate(ask("Tell me another long story."), ENDLESS, stream=True)
        async with aclosing(first), aclosing(second):
            await anext(first)
            await anext(second)
            assert model.idle == 0
            third = asyncio.create_task(answer(model, ask("What is the capital of France?")))
            await anext(first)
            await anext(second)
            assert not third.done()
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert "Paris" in "".join(await third)

    async def test_leaving_stops_the_model_while_it_writes_and_while_it_reads(self, model: LlamaLanguage) -> None:
        writing = model.generate(ask("Tell me a very long story."), ENDLESS, stream=True)
        await anext(writing)
        reading = asyncio.create_task(answer(model, ask("Count: " + "one two three " * 500)))
        # Nothing tells from outside that it reads; it does so for many times as long.
        await asyncio.wait([reading], timeout=0.3)
        left = time.process_time()
        closing = asyncio.ensure_future(writing.aclose())
        reading.cancel()
        assert await at_once(closing)
        await closing
        assert await at_once(reading)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.gather(*(answer(model, ask("Hi!")) for _ in range(PLACES)))
        # To its end, what was left takes ten seconds of the processor and more.
        assert time.process_time() - left < 6

    async def test_a_grammar_holds(self, model: LlamaLanguage) -> None:
        grammar = 'root ::= "{\\"name\\": \\"" ("open" | "close") "\\"}"'
        pieces = model.generate(ask("Open the door."), COLD, stream=False, grammar=grammar)
        assert json.loads("".join([piece async for piece in pieces]))["name"] in ("open", "close")

    async def test_the_likeliest_continuation_has_the_highest_score(self, model: LlamaLanguage) -> None:
        prompt = ask("Complete with one letter: A B C D E F")
        scores = await model.score(prompt, ["A", "F", "G"])
        assert len(scores) == 3
        assert all(score <= 0 for score in scores)
        again = await model.score(prompt, ["G", "A"])
        # They differ by a constant, whatever else is asked for.
        assert again[0] - again[1] == pytest.approx(scores[2] - scores[0], abs=0.05)

    async def test_what_it_cannot_do_is_said_and_it_goes_on(self, model: LlamaLanguage) -> None:
        with pytest.raises(ProviderError, match=r"The prompt has \d+ tokens, and 1536 fit"):
            await answer(model, ask("word " * 4000))
        with pytest.raises(ProviderError, match="The local model failed"):
            async for _ in model.generate(ask("Hi!"), COLD, stream=True, grammar="no grammar"):
                pass
        assert await answer(model, ask("Hi!"))

    async def test_unloading_ends_what_goes_on(self, model: LlamaLanguage) -> None:
        stream = model.generate(ask("Tell me a very long story."), ENDLESS, stream=True)
        await anext(stream)
        await model.close()
        with pytest.raises(ProviderError, match="was unloaded"):
            async for _ in stream:
                pass
        with pytest.raises(ProviderError, match="was unloaded"):
            await answer(model, ask("Hi!"))

    async def test_a_model_that_was_never_asked_can_be_unloaded(self, gguf: str) -> None:
        engine = await LlamaLanguage.load(MODEL, gguf, window=256, places=1, threads=THREADS)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await engine.close()
            await engine.close()

    async def test_a_file_that_is_no_model_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "bad.gguf").write_bytes(b"GGUF and nothing else")
        with pytest.raises(ProviderError, match=r"`bad\.gguf` cannot be loaded"):
            await LlamaLanguage.load("bad", str(tmp_path / "bad.gguf"), window=256)

    async def test_it_embeds_texts_however_long_they_are(self, gguf: str) -> None:
        engine = await LlamaEmbedding.load("e", gguf, window=64, threads=THREADS)
        same, again, long = await engine.embed(["a cat", "a cat", "1 2 " * 5000])
        assert engine.dimensions == len(same) == len(long)
        assert sum(x * y for x, y in zip(same, again, strict=True)) == pytest.approx(1, abs=1e-3)
        await engine.close()
        with pytest.raises(ProviderError, match="was unloaded"):
            await engine.embed(["a"])

    async def test_its_count_is_no_less_than_the_engines(self, model: LlamaLanguage) -> None:
        for text in ("The quick brown fox jumps over the lazy dog, 1234 times.\n\n" * 5, "Über größere Straßen läuft."):
            pieces = model.generate(ask(text), SamplingParams(max_tokens=1), stream=True)
            (_, with_text, _) = cost([piece async for piece in pieces])
            (_, without, _) = cost(await answer(model, ask("")))
            assert with_text - without <= model.count(text) <= 3 * (with_text - without)


@pytest.mark.long
@pytest.mark.timeout(TIMEOUT_SECONDS)
async def test_a_conversation_of_what_has_more_tokens_than_it_seems_goes_on(gguf: str) -> None:
    """Random capitals: each is nearly a token of its own, and the estimate takes five of them for one."""
    engine = await LlamaLanguage.load("m", gguf, window=512, places=1, threads=THREADS)
    try:
        brief = SamplingOverrides(temperature=0.0, max_tokens=8)
        made = await agent(graph(a=GenerateParams(sampling=brief)), LocalHost(language=lambda name: engine))
        letters = Random(3)
        for _ in range(8):
            noise = "".join(letters.choices("QZXJKVWYBPFG", k=80))
            ended = end(await take(made, f"Repeat: {noise}"))
            # There is always room for an answer.
            assert (ended.status, ended.tokens_prompt <= 384) == (TurnStatus.SUCCESS, True)
        too_long = "".join(letters.choices("QZXJKVWYBPFG", k=800))
        assert number(end(await take(made, too_long)).error) == 4001
        assert end(await take(made, "hi")).status == TurnStatus.SUCCESS
        assert too_long not in [user for user, _ in made.history()]
    finally:
        await engine.close()
