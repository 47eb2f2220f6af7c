"""Graphs that cannot work, and changes that cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.agents.graph.helpers import Recorder, agent, graph, host_in, said, take
from trunkline.agents.graph.agent import GraphAgent
from trunkline.agents.graph.host import LocalHost
from trunkline.agents.graph.params import RULES, rules_of
from trunkline.agents.graph.plan import MAX_NODES
from trunkline.core.fault_table import form_of
from trunkline.core.faults import Fault, ModelError, StorageMissing
from trunkline.core.graph.hosting import StringStorageDescription
from trunkline.wires.tryll.messages import (
    CannedResponseParams,
    ClassifyIntentLLMParams,
    ClassifyIntentParams,
    GenerateAndSpeakParams,
    GenerateParams,
    GraphDescription,
    HumanMessageGuardrailParams,
    InstructionParams,
    IntentToInstructionParams,
    NodeDescription,
    RetrieveParams,
    SamplingOverrides,
    SpeakParams,
    StringStorageKind,
    ToolCallParams,
    ToolDefinition,
    ToolParamDefinition,
)

ONE = NodeDescription("one", InstructionParams())
CANNED = CannedResponseParams(inline_strings=("hit",))


def guard(pattern: str) -> GraphDescription:
    return graph(bad=HumanMessageGuardrailParams(inline_strings=("fine", pattern)))


@pytest.mark.parametrize(
    ("described", "code", "told"),
    [
        (GraphDescription(), 3003, "no nodes"),
        (GraphDescription((ONE,), ""), 3003, "start node"),
        (GraphDescription((ONE,), "two"), 3003, "`two`"),
        (GraphDescription((ONE, ONE), "one"), 3003, "`one`"),
        (GraphDescription((NodeDescription("", InstructionParams()),), ""), 3003, "node 0"),
        (GraphDescription((NodeDescription("bad", None),), "bad"), 3003, "`bad`"),
        (
            GraphDescription(tuple(NodeDescription(str(n), InstructionParams()) for n in range(MAX_NODES + 1)), "0"),
            3003,
            "257",
        ),
        (graph(bad=SpeakParams(speaker_id=-1)), 3007, "`bad.speaker_id` is -1"),
        (graph(bad=SpeakParams(speed=0.05)), 3007, "`bad.speed` is 0.05"),
        (graph(bad=SpeakParams(speed=float("nan"))), 3007, "`bad.speed`"),
        (graph(bad=SpeakParams(min_sentence_chars=0)), 3007, "`bad.min_sentence_chars`"),
        (graph(bad=GenerateAndSpeakParams("m", speed=3.1)), 3007, "`bad.speed`"),
        (graph(bad=GenerateAndSpeakParams("m", placement=5)), 3007, "`bad.placement`"),
        (graph(bad=GenerateAndSpeakParams("m", sampling=SamplingOverrides(top_p=2))), 3007, "`bad.sampling.top_p`"),
        (graph(bad=GenerateAndSpeakParams("m", template="{{#open}}")), 3003, "`bad`: its template"),
        (graph(bad=SpeakParams(default_exit="gone")), 3008, "`gone`"),
        (
            graph(one=InstructionParams(), bad=InstructionParams(default_exit="gone")),
            3008,
            "`default` of the node `bad` leads to `gone`",
        ),
        (graph(bad=RetrieveParams("kb", not_found_exit="gone")), 3008, "`not_found`"),
        (graph(bad=InstructionParams(default_exit="END")), 3008, "`END`"),
        (guard("a{99999999}"), 3003, "repetitions"),
        (guard("(a{101}){101}"), 3003, "repetitions"),
        (guard("(" * 3000 + ")" * 3000), 3003, "characters"),
        (graph(bad=GenerateParams(template="{{#open}}")), 3003, "`bad`: its template"),
        (graph(bad=RetrieveParams()), 3003, "`bad`"),
        (graph(bad=RetrieveParams("kb", top_k=0)), 3007, "`bad.top_k` is 0"),
        (graph(bad=RetrieveParams("kb", top_k=1001)), 3007, "`bad.top_k`"),
        (graph(bad=RetrieveParams("kb", threshold=1.5)), 3007, "`bad.threshold`"),
        (graph(bad=RetrieveParams("kb", threshold=float("nan"))), 3007, "`bad.threshold`"),
        (graph(bad=ClassifyIntentParams("kb", "x", diagnostic_topk=65)), 3007, "`bad.diagnostic_topk`"),
        (graph(bad=GenerateParams(placement=5)), 3007, "`bad.placement`"),
        (graph(bad=CannedResponseParams(selection_strategy=3)), 3007, "`bad.selection_strategy`"),
        (graph(bad=GenerateParams(sampling=SamplingOverrides(temperature=-1))), 3007, "`bad.sampling.temperature`"),
        (graph(bad=GenerateParams(sampling=SamplingOverrides(max_tokens=0))), 3007, "`bad.sampling.max_tokens`"),
        (graph(bad=ToolCallParams(tool_call_format="xml")), 3003, "`xml`"),
        (graph(bad=ToolCallParams(tools=(ToolDefinition("t"), ToolDefinition("t")))), 3003, "`t`"),
        (graph(bad=ToolCallParams(tools=(ToolDefinition("t", "", (ToolParamDefinition(""),)),))), 3003, "`t`"),
        (graph(bad=ClassifyIntentLLMParams()), 3003, "`bad`"),
        (graph(bad=ClassifyIntentLLMParams(intents_ids="a,b", intents_prompt="a")), 3003, "2 `intents_ids` for 1"),
        (graph(bad=ClassifyIntentLLMParams(intents_ids="a,,b")), 3003, "empty"),
        (graph(bad=ClassifyIntentLLMParams(intents_ids=",".join(map(str, range(27))))), 3003, "26"),
        (graph(bad=ClassifyIntentLLMParams(intents_ids="a", system_prompt="{{#x}}")), 3003, "system prompt"),
        (graph(bad=ClassifyIntentLLMParams(intents_ids="a", history_turns=65)), 3007, "`bad.history_turns`"),
        (graph(bad=IntentToInstructionParams()), 3003, "`bad`"),
        (graph(bad=IntentToInstructionParams(inline_keys=("a",))), 3003, "1 `inline_keys` for 0"),
        (graph(bad=IntentToInstructionParams(inline_keys=("a", "a"), inline_strings=("1", "2"))), 3003, "twice"),
    ],
)
def test_a_graph_that_cannot_work_is_refused_with_the_name_of_what_is_wrong(
    described: GraphDescription, code: int, told: str
) -> None:
    with pytest.raises(Fault, match=told) as caught:
        GraphAgent(described, LocalHost(), default_model="m")
    assert form_of(caught.value.kind).tryll == code


@pytest.mark.parametrize(
    "pattern", ["(", "[", "(?R)?a", r"\\(?R)", "(?P<x>a(?&x)?)", "(" * 1500 + ")" * 1500, r"\L<x>", "*"]
)
@pytest.mark.parametrize("before", [1, 50])
async def test_a_pattern_that_is_none_is_refused(pattern: str, before: int) -> None:
    described = graph(bad=HumanMessageGuardrailParams(inline_strings=(*["fine"] * before, pattern)))
    with pytest.raises(Fault, match=f"`bad`: pattern {before} ") as caught:
        await agent(described)
    assert form_of(caught.value.kind).tryll == 3003


async def test_all_patterns_together_have_a_limit_and_literal_brackets_are_fine() -> None:
    lines = tuple(f"x{number}(x|y){{1400}}" for number in range(100))
    with pytest.raises(Fault, match=r"pattern \d\d .* together are too much"):
        await agent(graph(bad=HumanMessageGuardrailParams(inline_strings=lines)))
    made = await agent(
        graph(g=HumanMessageGuardrailParams(inline_strings=(r"\(?R", "a{3}"), triggered_exit="c"), c=CANNED)
    )
    assert said(await take(made, "(r")) == said(await take(made, "aaa")) == "hit"
    assert said(await take(made, "aa")) == ""


@pytest.mark.parametrize("params", [GenerateParams(), ToolCallParams(), ClassifyIntentLLMParams(intents_ids="a")])
def test_a_node_that_thinks_needs_a_model(params: Any) -> None:
    with pytest.raises(Fault, match="`bad` has no model") as caught:
        GraphAgent(graph(bad=params), LocalHost())
    assert form_of(caught.value.kind).tryll == 3003
    assert GraphAgent(graph(bad=params.replace(model_name="m")), LocalHost()).models() == ("m",)


@pytest.fixture
def host(tmp_path: Path) -> LocalHost:
    (tmp_path / "kb.json").write_text(
        json.dumps(
            {"embedding_model": "m", "records_file": "r.json", "fields": [{"name": "n", "type": "int", "default": 1}]}
        )
    )
    (tmp_path / "r.json").write_text('[{"id": "a", "text": "b"}]')
    (tmp_path / "list.txt").write_text("one\ntwo")
    (tmp_path / "other.txt").write_text("other")
    (tmp_path / "bad.txt").write_text("(")
    (tmp_path / "m.mm.json").write_text('[{"id": "a", "text": "b"}]')
    return host_in(tmp_path)


@pytest.mark.parametrize(
    ("params", "code"),
    [
        (CannedResponseParams("../x.txt"), 3009),
        (CannedResponseParams("/etc/passwd"), 3009),
        (CannedResponseParams("gone.txt"), 3010),
        (HumanMessageGuardrailParams("gone.txt"), 3010),
        (HumanMessageGuardrailParams("bad.txt"), 3003),
        (RetrieveParams("gone.json"), 3010),
        (RetrieveParams("../kb.json"), 3009),
        (RetrieveParams("kb.json", filter="{"), 3007),
        (RetrieveParams("kb.json", filter='{"op":"eq","lhs":{"knowledge":"x"},"rhs":{"value":1}}'), 3007),
        (ClassifyIntentParams("kb.json", "gone"), 3003),
        (ClassifyIntentParams("kb.json", "n"), 3003),
        (ClassifyIntentParams("kb.json"), 3003),
        (IntentToInstructionParams("list.txt"), 3011),
        (IntentToInstructionParams("m.mm.json"), 3011),
    ],
)
async def test_a_storage_that_does_not_fit_is_refused(host: LocalHost, params: Any, code: int) -> None:
    with pytest.raises(Fault) as caught:
        await agent(graph(bad=params), host)
    assert form_of(caught.value.kind).tryll == code


async def test_a_model_that_is_not_there_is_the_hosts_to_refuse() -> None:
    class Empty(LocalHost):
        async def language(self, model_name: str) -> Any:
            raise ModelError(f"There is no model `{model_name}`.")

    with pytest.raises(Fault, match="`gone`"):
        await agent(graph(a=GenerateParams(model_name="gone")), Empty())


# Changes.

BEFORE: dict[str, Any] = {
    "gen": GenerateParams("m", "p", default_exit="guard"),
    "guard": HumanMessageGuardrailParams("list.txt", (), "canned", "canned"),
    "canned": CannedResponseParams("list.txt", (), 2, "tool"),
    "tool": ToolCallParams("m", tools=(ToolDefinition("t"),), tool_call_format="chatml", tool_called_exit="find"),
    "find": RetrieveParams("kb.json", found_exit="tell"),
    "tell": InstructionParams(default_exit="llm"),
    "llm": ClassifyIntentLLMParams("m", "a,b", "x,y", found_exit="map"),
    "map": IntentToInstructionParams(inline_keys=("a",), inline_strings=("b",)),
    "say": SpeakParams("v"),
    "talk": GenerateAndSpeakParams("m", "v"),
}
OTHER: dict[str, Any] = {"tools": (ToolDefinition("u"),), "inline_strings": ("z",), "inline_keys": ("z",)}


def structural() -> list[tuple[str, str]]:
    return [
        (name, field)
        for name, params in BEFORE.items()
        for field in (*rules_of(params).structural, *(f"{each}_exit" for each in rules_of(params).exits))
    ]


@pytest.mark.parametrize(("name", "field"), structural())
async def test_what_is_structural_cannot_change(host: LocalHost, name: str, field: str) -> None:
    made = await agent(graph(**BEFORE), host)
    with pytest.raises(Fault, match=f"`{name}.{field}`") as caught:
        await made.change(name, BEFORE[name].replace(**{field: OTHER.get(field, "another")}))
    assert form_of(caught.value.kind).tryll == 3006


async def test_an_absent_text_and_an_empty_one_are_the_same(host: LocalHost) -> None:
    made = await agent(graph(**BEFORE), host)
    await made.change("map", BEFORE["map"].replace(default_exit="", string_storage=""))
    await made.change("guard", BEFORE["guard"].replace(inline_strings=()))


@pytest.mark.parametrize(
    ("name", "params", "code"),
    [
        ("nobody", GenerateParams(), 3005),
        ("gen", InstructionParams(), 3007),
        ("gen", BEFORE["gen"].replace(template="{{#open}}"), 3007),
        ("gen", BEFORE["gen"].replace(placement=9), 3007),
        ("find", BEFORE["find"].replace(top_k=0), 3007),
        ("find", BEFORE["find"].replace(filter="{"), 3007),
        ("guard", BEFORE["guard"].replace(string_storage="bad.txt"), 3007),
        ("guard", BEFORE["guard"].replace(string_storage="gone.txt"), 3010),
        ("canned", BEFORE["canned"].replace(string_storage="/x.txt"), 3009),
        ("map", BEFORE["map"].replace(string_storage="list.txt"), 3011),
        ("llm", BEFORE["llm"].replace(system_prompt="{{/x}}"), 3007),
        ("say", BEFORE["say"].replace(speed=9.0), 3007),
        ("talk", BEFORE["talk"].replace(template="{{/x}}"), 3007),
    ],
)
async def test_a_change_that_does_not_work_changes_nothing(host: LocalHost, name: str, params: Any, code: int) -> None:
    made = await agent(graph(**BEFORE), host)
    with pytest.raises(Fault) as caught:
        await made.change(name, params)
    assert form_of(caught.value.kind).tryll == code
    assert {node.name: node.params for node in made._nodes.values()} == BEFORE
    assert not made.busy


async def test_a_change_holds_from_the_next_turn_on() -> None:
    engine = Recorder()
    params = GenerateParams(system_prompt="one")
    made = await agent(graph(a=params), LocalHost(language=lambda name: engine))
    await take(made, "x")
    await made.change("a", params.replace(system_prompt="two", stream=True, sampling=SamplingOverrides(top_k=3)))
    await take(made, "y")
    assert [engine.shown(number)[0] for number in (0, 1)] == [("system", "one"), ("system", "two")]
    assert engine.sampling[1].top_k == 3


async def test_canned_lines_start_over_with_another_storage_and_only_then(host: LocalHost) -> None:
    params = CannedResponseParams("list.txt")
    made = await agent(graph(c=params), host)
    assert said(await take(made, "x")) == "one"
    await made.change("c", params.replace(selection_strategy=2))
    assert said(await take(made, "x")) == "two"
    await made.change("c", params.replace(string_storage="other.txt"))
    assert said(await take(made, "x")) == "other"
    await made.change("c", params)
    assert said(await take(made, "x")) == "one"


async def test_a_filter_can_be_set_and_cleared(host: LocalHost) -> None:
    params = RetrieveParams("kb.json", threshold=0.0, found_exit="yes")
    made = await agent(graph(find=params, yes=CannedResponseParams(inline_strings=("found",))), host)
    assert said(await take(made, "b")) == "found"
    await made.change("find", params.replace(filter='{"op":"gt","lhs":{"knowledge":"n"},"rhs":{"value":1}}'))
    assert said(await take(made, "b")) == ""
    await made.change("find", params.replace(filter=""))
    assert said(await take(made, "b")) == "found"


async def test_a_storage_that_was_destroyed_stays_with_the_nodes_that_use_it(host: LocalHost) -> None:
    host.shelf.create_strings(StringStorageDescription("s", ("1",), "", StringStorageKind.MAP, ("a",)))
    made = await agent(graph(c=CannedResponseParams("s")), host)
    host.shelf.destroy_strings("s")
    assert said(await take(made, "x")) == "1"
    with pytest.raises(StorageMissing):
        await agent(graph(c=CannedResponseParams("s")), host)


def test_every_text_node_of_the_schema_has_rules_that_name_real_fields() -> None:
    for params, rules in RULES.items():
        fields = {*rules.structural, *rules.ranges, *(f"{name}_exit" for name in rules.exits)}
        assert fields <= set(params.__fields__)
        assert {field for field in params.__fields__ if field.endswith("_exit")} <= fields
