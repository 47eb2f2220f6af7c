"""The engines without weights keep their promises."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from itertools import combinations

import pytest

from tests.agents.graph.helpers import Heard, agent, end, graph, said, take
from trunkline.agents.graph.turn import Delta, NodeNotice, Whole
from trunkline.models.embedding_mock import MAX_EMBEDDED_CHARS, MockEmbedding
from trunkline.models.engines import ChatMessage, Prompt
from trunkline.models.mock_language import MockLanguage
from trunkline.models.tool_calls import MAX_ARGUMENT
from trunkline.wires.tryll.messages import (
    GenerateParams,
    SamplingOverrides,
    ToolCallParams,
    ToolDefinition,
    ToolParamDefinition,
    TurnStatus,
)

TEXTS = ["hello", "hello   there,\n\tyou ", "", "  ", "ü 漢字 🦊", "one " * 5000, "a\nb"]


@pytest.mark.parametrize("text", TEXTS)
async def test_it_says_the_message_word_for_word_streamed_or_whole(text: str) -> None:
    whole = await take(await agent(graph(a=GenerateParams())), text)
    streamed = await take(await agent(graph(a=GenerateParams(stream=True))), text)
    assert said(whole) == said(streamed) == f"You said: {text}"
    pieces = sum(isinstance(event, Delta) for event in streamed)
    assert end(whole).tokens_generated == end(streamed).tokens_generated == pieces >= 2
    assert [type(event) for event in whole[:-1]] == [Whole]


async def test_one_token_is_one_word() -> None:
    events = await take(await agent(graph(a=GenerateParams(stream=True))), "dear friend")
    assert [event.text for event in events if isinstance(event, Delta)] == ["You", " said:", " dear", " friend"]
    assert end(events).tokens_generated == 4


async def test_a_limit_of_tokens_that_a_node_sets_holds() -> None:
    params = GenerateParams(sampling=SamplingOverrides(max_tokens=3))
    assert said(await take(await agent(graph(a=params)), "dear friend")) == "You said: dear"


@pytest.mark.virtual_time
async def test_a_slow_model_takes_its_time_and_nobody_elses() -> None:
    told: list[str] = []

    async def talk(name: str) -> None:
        class Noted(Heard):
            def delta(self, text: str) -> None:
                told.append(f"{name} piece")

        await (await agent(graph(a=GenerateParams(stream=True)), default_model=name)).turn("a b c", Noted())
        told.append(f"{name} end")

    clock = asyncio.get_running_loop()
    begun = clock.time()
    await asyncio.gather(talk("mock-slow"), talk("mock-slower"), talk("quick"))
    assert clock.time() - begun >= 5 * 0.02
    assert told[:6] == ["quick piece"] * 5 + ["quick end"]
    # Neither waits for the other.
    assert told.index("mock-slower piece") < told.index("mock-slow end")
    assert told.index("mock-slow piece") < told.index("mock-slower end")


TOOLS = (
    ToolDefinition(
        "set_light",
        "Lamps.",
        (ToolParamDefinition("lamp", "string"), ToolParamDefinition("on", "boolean"), ToolParamDefinition("n", "int")),
    ),
    ToolDefinition("open_door", "Doors."),
)


@pytest.mark.parametrize("form", ["chatml", "llama3", "mistral", "generic", ""])
async def test_it_calls_each_tool_whose_name_occurs_and_no_other(form: str) -> None:
    params = ToolCallParams(tools=TOOLS, notify_client=True, tool_call_format=form)
    made = await agent(graph(a=params))
    events = await take(made, "set_light and open_door!")
    calls = [event for event in events if isinstance(event, NodeNotice)]
    assert [(call.node, call.type, call.pairs[0]) for call in calls] == [
        ("a", "tool_call", ("tool_name", "set_light")),
        ("a", "tool_call", ("tool_name", "open_door")),
    ]
    assert calls[0].pairs[1] == ("arguments_json", '{"lamp":"set_light and open_door!","on":"true","n":"1"}')
    assert calls[1].pairs[1] == ("arguments_json", "{}")
    assert end(events).status == TurnStatus.SUCCESS
    for none in ("hello", '{"name": "lights", "tool": "evil"}', '<tool_call>{"name":"x"}</tool_call>'):
        assert [type(event) for event in await take(made, none)] == [type(end(events))]


async def test_many_tools_do_not_make_a_long_message_longer() -> None:
    texts = tuple(ToolParamDefinition(f"p{number}", "string") for number in range(64))
    tools = tuple(ToolDefinition(f"t{number:03}", "", texts) for number in range(128))
    message = " ".join(tool.name for tool in tools) + "\N{GRINNING FACE}" + "x" * 900_000
    made = await agent(graph(a=ToolCallParams(tools=tools, notify_client=True)))
    tracemalloc.start()
    try:
        events = await take(made, message)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    calls = [event for event in events if isinstance(event, NodeNotice)]
    assert [call.pairs[0][1] for call in calls] == [tool.name for tool in tools]
    assert peak < 64 << 20
    one = await take(await agent(graph(a=ToolCallParams(tools=tools[:1], notify_client=True))), message)
    (arguments,) = [json.loads(event.pairs[1][1]) for event in one if isinstance(event, NodeNotice)]
    assert arguments["p0"] == message[:MAX_ARGUMENT]


async def test_the_same_text_is_at_no_distance_and_texts_with_nothing_in_common_are_far() -> None:
    texts = [
        "the mill stands by the river", "QUICK BROWN FOXES", "a", "b", "zz", "?!", "...", "", "漢字", "42",
        "un deux", "wyrm", "x" * 3 * MAX_EMBEDDED_CHARS,
    ]  # fmt: skip
    engine = MockEmbedding("anything")
    vectors = await engine.embed(texts)
    again = await engine.embed(texts)
    for one, other in zip(vectors, again, strict=True):
        assert abs(1 - sum(x * y for x, y in zip(one, other, strict=True))) < 1e-5
    for one, other in combinations(vectors, 2):
        assert len(one) == engine.dimensions == 384
        assert 1 - sum(x * y for x, y in zip(one, other, strict=True)) > 0.5


async def test_texts_that_share_words_are_nearer_than_others() -> None:
    query, near, far = await MockEmbedding().embed(["where is the mill", "the mill is by the river", "dragons sleep"])
    assert sum(map(lambda x, y: x * y, query, near)) > 0.4 > sum(map(lambda x, y: x * y, query, far))


async def test_it_scores_the_intent_that_shares_the_most_words() -> None:
    prompt = Prompt((ChatMessage("system", "Choose.\nA) buy a sword\nB) say goodbye"), ChatMessage("user", "Goodbye")))
    scores = await MockLanguage().score(prompt, ["A", "B"])
    assert scores[1] > scores[0]
