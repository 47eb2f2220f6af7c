"""What the nodes do that need no knowledge: answers, lines, patterns, tools."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.agents.graph.helpers import Recorder, agent, debug, end, graph, host_in, said, take
from tests.support.faults import number
from trunkline.agents.graph.host import LocalHost
from trunkline.agents.graph.turn import NodeNotice, Whole
from trunkline.core.graph.hosting import StringStorageDescription
from trunkline.core.graph.models import SamplingParams
from trunkline.core.graph.turns import Ending
from trunkline.models import tool_calls
from trunkline.wires.tryll.messages import (
    CannedResponseParams,
    CannedResponseSelectionStrategy,
    GenerateParams,
    HumanMessageGuardrailParams,
    InstructionParams,
    Placement,
    SamplingOverrides,
    ToolCallParams,
    ToolDefinition,
    TurnStatus,
)


def with_engine(engine: Any) -> LocalHost:
    return LocalHost(language=lambda name: engine)


# Generate.


async def test_whoever_only_chooses_tools_sees_the_message_alone() -> None:
    """A history of answers would teach a small model to answer."""
    engine = Recorder()
    host = LocalHost(language=lambda name: engine)
    for may_answer, count in ((False, 2), (True, 4)):
        params = ToolCallParams(tools=(ToolDefinition("t"),), generate_on_no_tool=may_answer)
        made = await agent(graph(a=params), host)
        made.restore([("hello", "hi")])
        await take(made, "now")
        assert (len(engine.shown()), engine.shown()[-1]) == (count, ("user", "now"))


async def test_a_prompt_is_system_then_history_then_the_message() -> None:
    engine = Recorder("one", "two")
    made = await agent(graph(a=GenerateParams(system_prompt="Be nice.", model_name="m")), with_engine(engine))
    await take(made, "first")
    await take(made, "second")
    assert engine.shown() == [("system", "Be nice."), ("user", "first"), ("assistant", "one"), ("user", "second")]
    assert engine.prompts[-1].fresh == 3


@pytest.mark.parametrize(
    ("placement", "expected"),
    [
        (Placement.IN_PLACE_OF_USER, [("user", "Be kind. <hi>")]),
        (Placement.BEFORE_USER_AS_USER, [("user", "Be kind. "), ("user", "<hi>")]),
        (Placement.BEFORE_USER_AS_SYSTEM, [("system", "Be kind. "), ("user", "<hi>")]),
        (Placement.AFTER_USER_AS_USER, [("user", "<hi>"), ("user", "Be kind. ")]),
        (Placement.AFTER_USER_AS_SYSTEM, [("user", "<hi>"), ("system", "Be kind. ")]),
    ],
)
async def test_a_template_goes_where_its_placement_says(placement: int, expected: list[tuple[str, str]]) -> None:
    engine = Recorder()
    params = GenerateParams(template="{{instruction_tone}} {{user_message}}", placement=placement)
    made = await agent(
        graph(tone=InstructionParams(instruction="Be kind.", default_exit="a"), a=params), with_engine(engine)
    )
    await take(made, "<hi>")
    assert engine.shown() == expected
    # Only the current turn is rendered; the history holds what was said.
    await take(made, "again")
    assert engine.shown()[:2] == [("user", "<hi>"), ("assistant", "ok")]
    empty = await agent(graph(a=GenerateParams(template="{{nothing}} ", placement=placement)), with_engine(engine))
    await take(empty, "<hi>")
    assert engine.shown() == [("user", "<hi>")]


async def test_sampling_comes_from_the_node_then_the_catalog_then_the_defaults() -> None:
    engine = Recorder()
    engine.default_sampling = SamplingParams(temperature=0.3, top_k=40)
    params = GenerateParams(sampling=SamplingOverrides(temperature=0.0, seed=7))
    await take(await agent(graph(a=params), with_engine(engine)), "x")
    assert engine.sampling == [SamplingParams(temperature=0.0, top_k=40, seed=7)]


async def test_a_template_that_becomes_too_much_fails_the_turn(tmp_path: Path) -> None:
    nodes: dict[str, Any] = {
        f"i{n}": InstructionParams(instruction="x" * 9999, default_exit=f"i{n + 1}") for n in range(9)
    }
    template = (
        "{{#instructions}}{{#instructions}}{{#instructions}}{{text}}{{/instructions}}{{/instructions}}{{/instructions}}"
    )
    made = await agent(graph(**nodes, i9=GenerateParams(template=template)), diagnostics=True)
    events = await take(made, "x")
    assert (number(end(events).error), debug(events)["nodes"][-1]["name"]) == (4001, "i9")


# Strings.


async def test_canned_lines_come_round_robin_first_or_at_random() -> None:
    lines = ("a", "b", "c")
    turns = {}
    for strategy in (0, 1, 2):
        made = await agent(graph(c=CannedResponseParams(inline_strings=lines, selection_strategy=strategy)))
        turns[strategy] = [said(await take(made, "x")) for _ in range(30)]
    assert turns[CannedResponseSelectionStrategy.ROUND_ROBIN] == list(lines) * 10
    assert set(turns[CannedResponseSelectionStrategy.FIRST]) == {"a"}
    assert set(turns[CannedResponseSelectionStrategy.RANDOM]) <= set(lines)
    assert len(set(turns[CannedResponseSelectionStrategy.RANDOM])) > 1


async def test_lines_come_from_a_storage_else_from_the_node(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("from the file")
    host = host_in(tmp_path)
    host.shelf.create_strings(StringStorageDescription("named", ("from the storage",)))
    inline = ("inline",)
    for params, expected in (
        (CannedResponseParams("lines.txt", inline), "from the file"),
        (CannedResponseParams("named", inline), "from the storage"),
        (CannedResponseParams("", inline), "inline"),
    ):
        assert said(await take(await agent(graph(c=params), host), "x")) == expected
    assert await take(await agent(graph(c=CannedResponseParams())), "x") == [Whole("", final=True), Ending()]
    guard = graph(g=HumanMessageGuardrailParams(triggered_exit="c"), c=CannedResponseParams(inline_strings=inline))
    assert said(await take(await agent(guard), "so BAD!")) == ""


async def test_a_pattern_that_would_take_for_ever_ends_the_turn_and_blocks_nobody() -> None:
    guard = graph(g=HumanMessageGuardrailParams(inline_strings=("harmless", r"\w+" * 40 + r"\d")))
    made = await agent(guard, diagnostics=True)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticking = asyncio.create_task(tick())
    events = await take(made, "a" * 3000)
    ticking.cancel()
    assert (end(events).status, number(end(events).error)) == (TurnStatus.ERROR, 4002)
    assert "pattern 1" in debug(events)["error"]["message"]
    assert ticks > 5


# Tools.


async def test_what_is_no_call_may_be_the_answer() -> None:
    engine = Recorder("Just talk.", "Just talk.", '<tool_call>{"name":"t"}</tool_call>')
    tools = (ToolDefinition("t"),)
    answering = ToolCallParams(tools=tools, generate_on_no_tool=True, system_prompt="Be nice.")
    made = await agent(graph(a=answering), with_engine(engine))
    assert (await take(made, "x"))[0] == Whole("Just talk.", final=True)
    system = engine.shown()[0][1]
    assert system.startswith("Be nice.\n\nYou can call these tools:\n- t")
    assert engine.prompts[0].tools == tools
    assert 'call0 ::= "<tool_call>' in (engine.grammars[0] or "")
    silent = await agent(graph(a=ToolCallParams(tools=tools)), with_engine(engine))
    assert said(await take(silent, "x")) == ""
    # A call is not told to anybody who does not want to know.
    assert [type(event) for event in await take(silent, "x")] == [Ending]
    assert silent.history() == []


async def test_the_format_of_calls_is_the_nodes_else_the_models() -> None:
    engine = Recorder()
    engine.tool_call_format = "mistral"
    tools = (ToolDefinition("t"),)
    for params, expected in (
        (ToolCallParams(tools=tools), "mistral"),
        (ToolCallParams(tools=tools, tool_call_format="llama3"), "llama3"),
    ):
        await take(await agent(graph(a=params), with_engine(engine)), "x")
        assert engine.prompts[-1].tool_format == expected


async def test_the_grammar_of_tools_is_made_once_and_not_by_whom_others_wait_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[int] = []
    real = tool_calls.grammar

    def grammar(*given: Any, **options: Any) -> str:
        made.append(threading.get_ident())
        return real(*given, **options)

    monkeypatch.setattr(tool_calls, "grammar", grammar)
    schema = SamplingOverrides(json_schema='{"type":"object"}')
    params = ToolCallParams(tools=(ToolDefinition("t"),), generate_on_no_tool=True, sampling=schema)
    asked = await agent(graph(a=params))
    await take(asked, "one")
    await take(asked, "two")
    assert len(made) == 1
    assert made[0] != threading.get_ident()


async def test_tools_may_be_where_older_clients_put_them() -> None:
    described = graph(a=ToolCallParams(notify_client=True))
    described = described.replace(nodes=(described.nodes[0].replace(tools=(ToolDefinition("lamp"),)),))
    assert isinstance((await take(await agent(described), "the lamp"))[0], NodeNotice)
