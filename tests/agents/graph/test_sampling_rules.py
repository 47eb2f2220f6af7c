"""What may be asked of an answer, at its limits, and where it is refused."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from tests.agents.graph.helpers import Recorder, agent, end, graph, said, take
from trunkline.agents.graph import sampling_rules as rules
from trunkline.agents.graph.host import LocalHost
from trunkline.agents.graph.params import out_of_range
from trunkline.core.faults import BadParameter
from trunkline.core.graph.description import (
    GenerateAndSpeakParams,
    GenerateParams,
    LogitBias,
    LoraAdapter,
    SamplingOverrides,
    ToolCallParams,
    ToolDefinition,
)
from trunkline.core.graph.models import SamplingParams
from trunkline.core.graph.ordinals import TurnStatus
from trunkline.models.engines import Piece

MOOD = '{"type": "object", "properties": {"mood": {"enum": ["calm", "angry"]}}, "required": ["mood"]}'


def problems(**sampling: Any) -> list[str]:
    return [field for field, _ in out_of_range(GenerateParams("m", sampling=SamplingOverrides(**sampling)))]


def deep(levels: int) -> str:
    return '{"items": ' * (levels - 1) + "{}" + "}" * (levels - 1)


@pytest.mark.parametrize(
    ("fits", "is_too_much"),
    [
        ({"stop": ("x",) * rules.MAX_STOPS}, {"stop": ("x",) * (rules.MAX_STOPS + 1)}),
        ({"stop": ("x" * rules.MAX_STOP_CHARS,)}, {"stop": ("x" * (rules.MAX_STOP_CHARS + 1),)}),
        ({"stop": ("x",)}, {"stop": ("",)}),
        ({"json_schema": deep(rules.MAX_SCHEMA_DEPTH)}, {"json_schema": deep(rules.MAX_SCHEMA_DEPTH + 1)}),
        (
            {"json_schema": json.dumps({"title": "x" * (rules.MAX_SCHEMA_BYTES - 13)})},
            {"json_schema": json.dumps({"title": "x" * (rules.MAX_SCHEMA_BYTES - 12)})},
        ),
        ({"json_schema": "{}"}, {"json_schema": "{"}),
        ({"json_schema": "{}"}, {"json_schema": "[]"}),
        (
            {"logit_bias": tuple(LogitBias(str(number), 1.0) for number in range(rules.MAX_BIASES))},
            {"logit_bias": tuple(LogitBias(str(number), 1.0) for number in range(rules.MAX_BIASES + 1))},
        ),
        ({"logit_bias": (LogitBias("x", -100.0),)}, {"logit_bias": (LogitBias("x", -100.5),)}),
        ({"logit_bias": (LogitBias("x", 1.0),)}, {"logit_bias": (LogitBias("x", math.nan),)}),
        ({"logit_bias": (LogitBias("x"), LogitBias("y"))}, {"logit_bias": (LogitBias("x"), LogitBias("x"))}),
        ({"logit_bias": (LogitBias("x"),)}, {"logit_bias": (LogitBias(""),)}),
        (
            {"lora": tuple(LoraAdapter(str(number)) for number in range(rules.MAX_LORA))},
            {"lora": tuple(LoraAdapter(str(number)) for number in range(rules.MAX_LORA + 1))},
        ),
        ({"lora": (LoraAdapter("x", 10.0),)}, {"lora": (LoraAdapter("x", math.inf),)}),
        ({"lora": (LoraAdapter("x"),)}, {"lora": (LoraAdapter(""),)}),
        ({"lora": (LoraAdapter("x"), LoraAdapter("y"))}, {"lora": (LoraAdapter("x"), LoraAdapter("x"))}),
    ],
)
def test_what_fits_is_taken_and_one_more_is_refused(fits: dict[str, Any], is_too_much: dict[str, Any]) -> None:
    assert problems(**fits) == []
    assert problems(**is_too_much) == [f"sampling.{next(iter(is_too_much))}"]


def answering(engine: Recorder) -> LocalHost:
    return LocalHost(language=lambda _: engine)


def asks(**sampling: Any) -> GenerateParams:
    return GenerateParams("m", sampling=SamplingOverrides(**sampling))


async def test_each_node_that_asks_a_model_passes_all_of_it_on_and_can_be_changed() -> None:
    whole = SamplingOverrides(
        0.5, 0.9, 3, 0.1, 1.1, 0.2, 0.3, 50, 7, ("END",), None, (LogitBias("no", -5.0),), (LoraAdapter("grim", 0.5),)
    )
    tools = (ToolDefinition("wave"),)
    for params in (
        GenerateParams("m", sampling=whole),
        GenerateParams("m", sampling=whole, stream=True),
        GenerateAndSpeakParams("m", sampling=whole),
        ToolCallParams("m", tools=tools, sampling=whole),
    ):
        engine = Recorder("one", "two")
        made = await agent(graph(ask=params), answering(engine))
        await take(made, "hello")
        changed = whole.replace(stop=("STOP",), seed=8)
        await made.change("ask", params.replace(sampling=changed))
        await take(made, "hello")
        for sampling, asked in zip(engine.sampling, (whole, changed), strict=True):
            assert {field: getattr(sampling, field) for field in whole.__fields__} == {
                field: getattr(asked, field) for field in whole.__fields__
            }


async def test_a_node_says_nothing_and_the_model_s_own_holds() -> None:
    engine = Recorder("ok END more")
    engine.default_sampling = SamplingParams(stop=("END",), lora=(LoraAdapter("grim"),))
    made = await agent(graph(ask=GenerateParams("m")), LocalHost(language=lambda _: engine))
    assert said(await take(made, "hello")) == "ok "
    assert engine.sampling[0].lora == (LoraAdapter("grim"),)


async def test_what_an_engine_cannot_do_is_refused_when_the_agent_is_made_and_when_it_is_changed() -> None:
    engine = Recorder()
    host = LocalHost(language=lambda _: engine)
    made = await agent(graph(ask=asks()), host)
    engine.refused = "There is no adapter `x`."
    with pytest.raises(BadParameter, match="The node `ask`: There is no adapter `x`"):
        await agent(graph(ask=asks(lora=(LoraAdapter("x"),))), host)
    with pytest.raises(BadParameter, match="There is no adapter `x`"):
        await made.change("ask", asks(lora=(LoraAdapter("x"),)))
    engine.refused = None
    assert said(await take(made, "hello")) == "ok"


@pytest.mark.parametrize("stream", [True, False])
async def test_json_that_is_cut_off_fails_the_turn_and_says_why(stream: bool) -> None:
    for answer, most, why in (
        (Piece('{"mood": "ca', 5), 5, "cut off at `max_tokens`, 5"),
        (Piece("I am calm.", 5), None, "does not keep to `json_schema`"),
    ):
        params = GenerateParams("m", stream=stream, sampling=SamplingOverrides(json_schema=MOOD, max_tokens=most))
        found = end(await take(await agent(graph(ask=params), answering(Recorder(answer))), "hello"))
        assert found.status == TurnStatus.ERROR
        assert why in str(found.error)


async def test_json_that_is_whole_ends_the_turn_well() -> None:
    engine = Recorder('{"mood": "calm"}')
    made = await agent(graph(ask=asks(json_schema=MOOD)), LocalHost(language=lambda _: engine))
    assert end(await take(made, "hello")).status == TurnStatus.SUCCESS


async def test_a_schema_of_a_node_that_only_calls_tools_is_refused() -> None:
    params = ToolCallParams("m", tools=(ToolDefinition("wave"),), sampling=SamplingOverrides(json_schema=MOOD))
    with pytest.raises(Exception, match="without `generate_on_no_tool`"):
        await agent(graph(ask=params))
    engine = Recorder('{"mood": "calm"}', "nonsense")
    answering = params.replace(generate_on_no_tool=True)
    made = await agent(graph(ask=answering), LocalHost(language=lambda _: engine))
    assert said(await take(made, "hello")) == '{"mood": "calm"}'
    assert "json ::= " in (engine.grammars[0] or "")
    assert end(await take(made, "hello")).status == TurnStatus.ERROR
    with pytest.raises(BadParameter, match="without `generate_on_no_tool`"):
        await made.change("ask", params)
