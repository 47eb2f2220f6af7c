"""What a graph may take: patterns, vectors, answers and diagnostics, however often it goes round."""

from __future__ import annotations

import gc
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest

from tests.agents.graph.helpers import Recorder, agent, debug, end, graph, node_names, take
from tests.support.faults import number
from trunkline.agents.graph import diagnostics, embedded, interaction, patterns, turn
from trunkline.agents.graph.embedded import FoundRecord
from trunkline.agents.graph.host import LocalHost
from trunkline.core.fault_table import form_of
from trunkline.core.faults import Fault, NodeFailed
from trunkline.core.graph.hosting import EmbeddedStorageDescription
from trunkline.core.graph.models import SamplingParams
from trunkline.models.engines import Prompt, Slot
from trunkline.wires.tryll.messages import (
    CannedResponseParams,
    GenerateAndSpeakParams,
    GenerateParams,
    HumanMessageGuardrailParams,
    InstructionParams,
    NodeParams,
    RetrieveParams,
    ToolCallParams,
    ToolDefinition,
    TurnStatus,
)


def guard(*lines: str) -> HumanMessageGuardrailParams:
    return HumanMessageGuardrailParams(inline_strings=lines)


async def lore(count: int) -> LocalHost:
    host = LocalHost()
    texts = tuple(f"record {number}" for number in range(count))
    request = EmbeddedStorageDescription("lore", strings=texts, embedding_model="any")
    await host.shelf.create_embedded(request, host.embedding)
    return host


async def test_patterns_that_several_nodes_have_count_once_and_all_have_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patterns, "MAX_BYTES", 8000)
    long = "a" * 60
    await agent(graph(a=guard(long), b=guard(long), c=guard(long, "b")))
    with pytest.raises(Fault, match=r"`c`: pattern 1 .* together are too much") as caught:
        await agent(graph(a=guard(long), b=guard(long), c=guard(long, "(a|b)" * 20)))
    assert form_of(caught.value.kind).tryll == 3003


def test_patterns_that_nobody_has_any_more_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "MAX_BYTES", 6000)
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
    with pytest.raises(Fault, match="at most 3 strings") as caught:
        await lore(4)
    assert form_of(caught.value.kind).tryll == 8003


async def test_a_turn_that_answers_too_much_fails_and_the_next_one_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn, "MAX_ANSWER", 1000)
    circle = graph(a=GenerateParams(default_exit="b"), b=CannedResponseParams(inline_strings=("x",), default_exit="a"))
    made = await agent(circle, max_steps=8)
    assert number(end(await take(made, "word " * 100)).error) == 4001
    assert number(end(await take(made, "word")).error) == 4003


async def test_a_turn_that_finds_too_much_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn, "MAX_CHUNKS", 10)
    look = RetrieveParams(embedded_string_storage="lore", top_k=4, threshold=0, found_exit="a")
    events = await take(await agent(graph(a=look), await lore(4), diagnostics=True), "record")
    assert (number(end(events).error), node_names(events)) == (4001, ["a"] * 3)


class Endless:
    """An engine that comes to no end."""

    context_size = 100_000
    tool_call_format = ""
    default_sampling = None
    pieces = 0

    def refusal(self, sampling: SamplingParams) -> str | None:
        return None

    async def generate(self, prompt: Prompt, sampling: SamplingParams, **options: Any) -> AsyncGenerator[str, None]:
        while True:
            self.pieces += 1
            yield "more "

    async def score(self, prompt: Prompt, continuations: Sequence[str], *, slot: Slot | None = None) -> list[float]:
        raise NotImplementedError

    def count(self, text: str) -> int:
        return len(text)

    def release(self, slot: Slot) -> None:
        pass


TOOLS = (ToolDefinition("open_gate", "Opens the gate."),)


@pytest.mark.parametrize(
    "node",
    [GenerateParams(), GenerateParams(stream=True), ToolCallParams(tools=TOOLS), GenerateAndSpeakParams()],
)
async def test_a_model_that_comes_to_no_end_fails_the_turn(monkeypatch: pytest.MonkeyPatch, node: NodeParams) -> None:
    monkeypatch.setattr(turn, "MAX_ANSWER", 1000)
    engine = Endless()
    made = await agent(graph(a=node), LocalHost(language=lambda name: engine))
    made.restore([("before", "kept")])
    assert number(end(await take(made, "go")).error) == 4001
    assert engine.pieces == 201
    # What is too long would push everything else out of the history.
    assert made.history() == [("before", "kept")]


async def test_all_templates_of_a_turn_have_a_limit_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn, "MAX_STEPS", 100)
    circle = graph(a=GenerateParams(template="{{user_message}}" * 30, default_exit="a"))
    events = await take(await agent(circle, diagnostics=True), "go")
    assert (number(end(events).error), node_names(events)) == (4001, ["a"] * 5)


async def test_what_later_nodes_add_is_in_their_templates_and_not_twice() -> None:
    template = "{{#instructions}}{{text}};{{/instructions}}{{instruction_same}}{{#knowledge}}{{name}}{{/knowledge}}"
    heard = Recorder()
    described = graph(
        a=InstructionParams(instruction="one", instruction_name="same", default_exit="b"),
        b=GenerateParams(template=template, placement=0, default_exit="c"),
        c=InstructionParams(instruction="two", instruction_name="same", default_exit="d"),
        d=RetrieveParams(embedded_string_storage="lore", not_found_exit="e", found_exit="e"),
        e=GenerateParams(template=template, placement=0),
    )
    host = await lore(1)
    host._language = lambda name: heard
    await take(await agent(described, host), "go")
    assert [heard.shown(number)[-1][1] for number in (0, 1)] == ["one;one", "one;two;twod"]


async def test_diagnostics_of_a_long_turn_name_every_node_and_keep_what_came_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(diagnostics, "MAX_KEPT", 50)
    circle = graph(a=GenerateParams(default_exit="a", model_name="m"))
    told = debug(await take(await agent(circle, diagnostics=True, max_steps=6), "a message of some length"))
    assert [bool(node["data"]) for node in told["nodes"]] == [True, True, False, False, False, False]
    assert told["truncated"] is True


async def test_diagnostics_keep_so_many_values_however_short_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnostics, "MAX_VALUES", 40)
    look = RetrieveParams(embedded_string_storage="lore", top_k=4, threshold=0, found_exit="a")
    told = debug(await take(await agent(graph(a=look), await lore(4), diagnostics=True, max_steps=5), "record"))
    assert [bool(node["data"]) for node in told["nodes"]] == [True, True, True, False, False]
    assert told["truncated"] is True


async def test_many_short_records_are_cut_off_like_one_long_text() -> None:
    found = turn.GraphTurn("hi")
    found.found(turn.Knowledge("lore", (FoundRecord(0, "0", "r", 0.5),) * 20_000))
    gathered = interaction.Interaction(found)
    gathered.update()
    (_, knowledge), whole = gathered.shown()
    assert (len(knowledge["chunks"]) < 5000, whole) == (True, False)


async def test_an_interaction_that_is_too_long_is_cut_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interaction, "MAX_SHOWN", 150)
    look = RetrieveParams(embedded_string_storage="lore", top_k=4, threshold=0, found_exit="b")
    described = graph(a=look, b=CannedResponseParams(inline_strings=("an answer",)))
    events = await take(await agent(described, await lore(4), diagnostics=True), "record")
    told = debug(events)
    assert end(events).status == TurnStatus.SUCCESS
    assert told["truncated"] is True
    human, knowledge = told["interaction"]
    assert human == {"_type": "HumanMessage", "text": "record"}
    assert 0 < len(knowledge["chunks"]) < 4


def test_what_nodes_answer_without_a_model_adds_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn, "MAX_ANSWER", 10)
    one = turn.GraphTurn("hi")
    for text in ("12345", "67890"):
        one.wrote(text, final=False)
    with pytest.raises(NodeFailed):
        one.wrote("1", final=False)
    assert one.answer == "12345\n67890"
