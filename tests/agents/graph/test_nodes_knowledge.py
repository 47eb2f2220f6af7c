"""What the nodes do with knowledge and intents."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.agents.graph.helpers import ProviderError, Recorder, agent, debug, end, graph, host_in, take
from tests.support.faults import number
from trunkline.agents.graph.host import LocalHost
from trunkline.agents.graph.turn import NodeNotice
from trunkline.core.fault_table import form_of
from trunkline.core.faults import Fault
from trunkline.core.graph.hosting import EmbeddedStorageDescription
from trunkline.models.embedding_mock import MockEmbedding
from trunkline.models.engines import Vector
from trunkline.wires.tryll.messages import (
    CannedResponseParams,
    ClassifyIntentLLMParams,
    ClassifyIntentParams,
    GenerateParams,
    IntentToInstructionParams,
    RetrieveParams,
    TurnStatus,
)


def with_engine(engine: Any) -> LocalHost:
    return LocalHost(language=lambda name: engine)


# Knowledge and intents.

FIELDS = [{"name": "intent", "type": "string", "default": ""}, {"name": "level", "type": "int", "default": 1}]
RECORDS = [
    {"id": "r1", "text": "I want to buy a sword", "metadata": {"intent": "buy"}},
    {"id": "r2", "text": "goodbye my friend", "metadata": {"intent": "leave", "level": 5}},
    {"id": "r3", "text": "hm hm hm", "metadata": {}},
]


@pytest.fixture
def host(tmp_path: Path) -> LocalHost:
    described = {"embedding_model": "mini", "records_file": "records.json", "fields": FIELDS}
    (tmp_path / "kb.json").write_text(json.dumps(described))
    (tmp_path / "records.json").write_text(json.dumps(RECORDS))
    (tmp_path / "moods.json").write_text('[{"id":"buy","text":"Offer a price."},{"id":"leave","text":"Wave."}]')
    (tmp_path / "list.txt").write_text("x")
    return host_in(tmp_path)


async def test_what_is_retrieved_is_rendered_and_told_in_the_diagnostics(host: LocalHost) -> None:
    engine = Recorder()
    host = LocalHost(host.shelf, language=lambda name: engine)
    template = (
        "{{#knowledge}}{{name}}{{#has_chunks}}!{{/has_chunks}}{{#chunks}}[{{id}} {{text}}]{{/chunks}}{{/knowledge}}"
        "{{^knowledge_lore}}none{{/knowledge_lore}}"
    )
    search = RetrieveParams("kb.json", source="lore", found_exit="a", not_found_exit="a")
    made = await agent(graph(find=search, a=GenerateParams(template=template)), host, diagnostics=True)
    events = await take(made, "I want to buy a sword")
    assert engine.shown()[0] == ("system", "lore![r1 I want to buy a sword]")
    told = debug(events)
    assert told["nodes"][0]["exit"] == "found"
    assert told["find.result[000].text"] == "I want to buy a sword"
    assert float(told["find.result[000].distance"]) < 0.001
    assert (told["find.raw_result_count"], told["find.result_count"]) == ("2", "1")
    events = await take(made, "zzz qqq")
    assert (debug(events)["nodes"][0]["exit"], engine.shown()[-2]) == ("not_found", ("system", "lorenone"))


@pytest.mark.parametrize(
    ("params", "text", "expected"),
    [
        (RetrieveParams("kb.json", threshold=0.0, top_k=3), "zzz", "found"),
        (RetrieveParams("kb.json", threshold=0.0), "  ", "not_found"),
        (RetrieveParams("kb.json", threshold=0.5), "zzz", "not_found"),
        (
            RetrieveParams(
                "kb.json", threshold=0.0, filter='{"op":"gt","lhs":{"knowledge":"level"},"rhs":{"value":9}}'
            ),
            "buy",
            "not_found",
        ),
        (ClassifyIntentParams("kb.json", "intent"), "goodbye my friend", "found"),
        (ClassifyIntentParams("kb.json", "intent"), "zzz", "not_found"),
        (ClassifyIntentParams("kb.json", "intent", threshold=0.0), "zzz buy", "found"),
        (ClassifyIntentParams("kb.json", "intent"), "hm hm hm", "not_found"),
        (ClassifyIntentParams("kb.json", "intent"), "", "not_found"),
    ],
)
async def test_a_threshold_is_the_largest_distance_and_0_is_none(
    host: LocalHost, params: Any, text: str, expected: str
) -> None:
    events = await take(await agent(graph(n=params), host, diagnostics=True), text)
    assert debug(events)["nodes"][0]["exit"] == expected


async def test_an_intent_becomes_an_instruction_and_an_event(host: LocalHost) -> None:
    engine = Recorder()
    host = LocalHost(host.shelf, language=lambda name: engine)
    nodes = {
        "classify": ClassifyIntentParams(
            "kb.json", "intent", notify_client=True, found_exit="map", not_found_exit="map"
        ),
        "map": IntentToInstructionParams("moods.json", instruction_name="mood", default_exit="a"),
        "a": GenerateParams(template="{{instruction_mood}}"),
    }
    made = await agent(graph(**nodes), host, diagnostics=True)
    events = await take(made, "goodbye my friend")
    (event,) = [event for event in events if isinstance(event, NodeNotice)]
    pairs = dict(event.pairs)
    assert (event.node, event.type, list(pairs)) == (
        "classify",
        "intent_classified",
        ["intent", "record_id", "record_index", "distance"],
    )
    assert (pairs["intent"], pairs["record_id"], pairs["record_index"]) == ("leave", "r2", "1")
    assert engine.shown()[0] == ("system", "Wave.")
    assert debug(events)["map.found"] == "true"
    events = await take(made, "zzz")
    assert engine.shown()[-1] == ("user", "zzz")
    assert debug(events)["map.found"] == "false"


LLM = ClassifyIntentLLMParams(
    intents_ids="buy, leave,other", intents_prompt="wants to buy, says goodbye, anything else", notify_client=True
)


@pytest.mark.parametrize(
    ("scores", "changes", "exit_name", "reason"),
    [
        ([5, 0, 0], {}, "found", None),
        ([1, 1, 1], {}, "not_found", "below_threshold"),
        ([1, 1, 1], {"threshold": 0.0, "margin": 0.0}, "found", None),
        ([2, 1.9, -9], {}, "not_found", "below_margin"),
        ([0, 0, 9], {"not_found_intent": "other"}, "not_found", "sink_intent"),
        ([1], {}, "not_found", "score_size_mismatch"),
        ([float("nan"), 1, 1], {}, "not_found", "score_size_mismatch"),
        ([1000, -1000, 0], {}, "found", None),
    ],
)
async def test_a_model_chooses_an_intent_by_likelihood(
    scores: list[float], changes: dict[str, Any], exit_name: str, reason: str | None
) -> None:
    engine = Recorder(scores=scores)
    made = await agent(graph(c=LLM.replace(**changes)), with_engine(engine), diagnostics=True)
    events = await take(made, "a sword please")
    (node,) = debug(events)["nodes"]
    assert (node["exit"], node["data"].get("not_found_reason")) == (exit_name, reason)
    assert any(isinstance(event, NodeNotice) for event in events) == (exit_name == "found")
    system, user = engine.shown()
    assert system[1].endswith("A) wants to buy\nB) says goodbye\nC) anything else")
    assert user == ("user", "a sword please")


async def test_a_model_that_cannot_score_finds_nothing_and_an_empty_message_is_not_scored() -> None:
    engine = Recorder(scores=[1, 1, 1])
    made = await agent(graph(c=LLM), with_engine(engine), diagnostics=True)
    assert debug(await take(made, " \n"))["c.not_found_reason"] == "empty_message"
    assert not engine.prompts
    engine.fails = ProviderError("no logits")
    assert debug(await take(made, "x"))["c.not_found_reason"] == "score_failed"


async def test_a_model_that_classifies_sees_only_some_history() -> None:
    engine = Recorder(scores=[9, 0, 0])
    nodes = graph(
        c=LLM.replace(history_turns=1, system_prompt="Pick: {{intents}}", found_exit="a"),
        a=CannedResponseParams(inline_strings=("ok",)),
    )
    made = await agent(nodes, with_engine(engine))
    for text in ("one", "two", "three"):
        await take(made, text)
    assert engine.shown() == [
        ("system", "Pick: A) wants to buy\nB) says goodbye\nC) anything else"),
        ("user", "two"),
        ("assistant", "ok"),
        ("user", "three"),
    ]


async def test_the_mock_always_finds_an_intent_without_thresholds() -> None:
    made = await agent(graph(c=LLM.replace(threshold=0.0, margin=0.0)), diagnostics=True)
    for text, intent in (("goodbye", "leave"), ("I want to buy", "buy"), ("xyz", "buy")):
        events = await take(made, text)
        assert debug(events)["c.result.intent"] == intent
        assert debug(events)["nodes"][0]["exit"] == "found"
    assert debug(await take(made, ""))["nodes"][0]["exit"] == "not_found"


@pytest.mark.parametrize("params", [RetrieveParams("lore"), ClassifyIntentParams("kb.json", "intent")])
async def test_an_embedding_engine_that_fails_fails_the_turn(host: LocalHost, params: Any) -> None:
    class Tired(MockEmbedding):
        async def embed(self, texts: Sequence[str]) -> list[Vector]:
            if texts[0] == "x":
                raise ProviderError("too tired.")
            return await super().embed(texts)

    host = LocalHost(host.shelf, embedding=Tired)
    lore = EmbeddedStorageDescription("lore", "", ("a",), "m")
    await host.shelf.create_embedded(lore, host.embedding)
    made = await agent(graph(n=params), host, diagnostics=True)
    events = await take(made, "x")
    assert (end(events).status, number(end(events).error)) == (TurnStatus.ERROR, 4001)
    assert "too tired." in debug(events)["error"]["message"]
    with pytest.raises(Fault, match="too tired") as caught:
        await host.shelf.create_embedded(lore.replace(name="y", strings=("x",)), host.embedding)
    assert form_of(caught.value.kind).tryll == 8003


async def test_the_label_of_an_intent_can_come_from_another_field(host: LocalHost) -> None:
    made = await agent(graph(n=ClassifyIntentParams("kb.json", "intent")), host)
    with pytest.raises(Fault, match="`gone`") as caught:
        await made.change("n", ClassifyIntentParams("kb.json", "gone"))
    assert form_of(caught.value.kind).tryll == 3007
    await made.change("n", ClassifyIntentParams("kb.json", "intent", threshold=0.1))
