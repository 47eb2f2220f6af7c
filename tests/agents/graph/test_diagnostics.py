"""What is told about a turn."""

from __future__ import annotations

from tests.agents.graph.helpers import agent, debug, end, graph, node_names, take
from trunkline.agents.graph import diagnostics
from trunkline.models.engines import Prompt
from trunkline.wires.tryll.messages import (
    GenerateParams,
    InstructionParams,
    ToolCallParams,
    ToolDefinition,
)


async def test_diagnostics_are_only_for_those_who_want_them() -> None:
    assert end(await take(await agent(graph(a=GenerateParams())), "x")).debug_info == ""
    events = await take(await agent(graph(a=GenerateParams(stream=True, model_name="m")), diagnostics=True), "x")
    told = debug(events)
    assert (told["status"], told["tokens_generated"], told["error"]) == ("Success", 3, None)
    assert told["ttft_ms"] <= told["wall_ms"]
    assert told["nodes"][0] | {"ms": 0} == {
        "name": "a", "type": "Generate", "exit": "default", "ms": 0, "data": {"model": "m", "prompt": "[user] x"},
    }  # fmt: skip
    assert told["a.prompt"] == "[user] x"


async def test_diagnostics_always_fit_into_a_frame() -> None:
    asking = ToolCallParams(tools=(ToolDefinition("t" * 99),), no_tool_called_exit="b")
    made = await agent(graph(a=asking, b=asking.replace(no_tool_called_exit="")), diagnostics=True)
    events = await take(made, "\x01 long " * 90_000)
    assert len(end(events).debug_info.encode()) <= diagnostics.MAX_BYTES
    assert debug(events)["truncated"] is True
    assert node_names(events) == ["a", "b"]
    assert debug(events)["b.prompt"].startswith("[system] You can call")
    name = "\x01" * 250
    circle = graph(**{name: InstructionParams(default_exit=name)})
    events = await take(await agent(circle, diagnostics=True, max_steps=800), "x")
    assert len(end(events).debug_info.encode()) <= diagnostics.MAX_BYTES
    assert debug(events)["error"]["kind"] == "too_many_steps"
    assert set(node_names(events)) == {name}


def test_a_prompt_knows_what_the_user_said_last() -> None:
    assert Prompt(()).last_user_text == ""
