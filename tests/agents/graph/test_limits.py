"""What a graph may take: patterns, vectors, answers and diagnostics, however often it goes round."""

from __future__ import annotations

import gc

import pytest

from tests.agents.graph.helpers import agent, debug, end, graph, node_names, take
from trunkline.agents.graph import diagnostics, embedded, interaction, patterns, turn
from trunkline.agents.graph.host import LocalHost
from trunkline.wires.tryll.errors import TryllError
from trunkline.wires.tryll.messages import (
    CannedResponseParams,
    CreateEmbeddedStringStorageRequest,
    GenerateParams,
    HumanMessageGuardrailParams,
    RetrieveParams,
    TurnStatus,
)


def guard(*lines: str) -> HumanMessageGuardrailParams:
    return HumanMessageGuardrailParams(inline_strings=lines)


async def lore(count: int) -> LocalHost:
    host = LocalHost()
    texts = tuple(f"record {number}" for number in range(count))
    request = CreateEmbeddedStringStorageRequest(1, "lore", strings=texts, embedding_model="any")
    await host.shelf.create_embedded(request, host.embedding)
    return host


async def test_patterns_that_several_nodes_have_count_once_and_all_have_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patterns, "MAX_WEIGHT", 100)
    long = "a" * 60
    await agent(graph(a=guard(long), b=guard(long), c=guard(long, "b")))
    with pytest.raises(TryllError, match=r"`c`: pattern 1 .* together are too much") as caught:
        await agent(graph(a=guard(long), b=guard(long), c=guard(long, "b" * 60)))
    assert caught.value.code == 3003


def test_patterns_that_nobody_has_any_more_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "MAX_WEIGHT", 100)
    book = patterns.PatternBook()
    held = book.compile(["a" * 60])
    with pytest.raises(patterns.PatternError):
        book.compile(["b" * 60])
    del held
    gc.collect()
    assert book.compile(["b" * 60])


async def test_texts_of_a_request_may_have_so_many_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "MAX_INLINE_NUMBERS", 384 * 3)
    await lore(3)
    with pytest.raises(TryllError, match="at most 3 strings") as caught:
        await lore(4)
    assert caught.value.code == 8003


async def test_a_turn_that_answers_too_much_fails_and_the_next_one_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn, "MAX_ANSWER", 1000)
    circle = graph(a=GenerateParams(default_exit="b"), b=CannedResponseParams(inline_strings=("x",), default_exit="a"))
    made = await agent(circle, max_steps=8)
    assert end(await take(made, "word " * 100)).error == 4001
    assert end(await take(made, "word")).error == 4003


async def test_a_turn_that_finds_too_much_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn, "MAX_CHUNKS", 10)
    look = RetrieveParams(embedded_string_storage="lore", top_k=4, threshold=0, found_exit="a")
    events = await take(await agent(graph(a=look), await lore(4), diagnostics=True), "record")
    assert (end(events).error, node_names(events)) == (4001, ["a"] * 3)


async def test_diagnostics_of_a_long_turn_name_every_node_and_keep_what_came_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(diagnostics, "MAX_KEPT", 50)
    circle = graph(a=GenerateParams(default_exit="a", model_name="m"))
    told = debug(await take(await agent(circle, diagnostics=True, max_steps=6), "a message of some length"))
    assert [bool(node["data"]) for node in told["nodes"]] == [True, True, False, False, False, False]
    assert told["truncated"] is True


async def test_an_interaction_that_is_too_long_is_cut_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interaction, "MAX_SHOWN", 30)
    look = RetrieveParams(embedded_string_storage="lore", top_k=4, threshold=0, found_exit="b")
    described = graph(a=look, b=CannedResponseParams(inline_strings=("an answer",)))
    events = await take(await agent(described, await lore(4), diagnostics=True), "record")
    told = debug(events)
    assert end(events).status == TurnStatus.SUCCESS
    assert told["truncated"] is True
    human, knowledge = told["interaction"]
    assert human == {"_type": "HumanMessage", "text": "record"}
    assert 0 < len(knowledge["chunks"]) < 4
