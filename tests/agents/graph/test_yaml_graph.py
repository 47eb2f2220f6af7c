"""Graphs as files, and complaints that say where."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.agents.graph.helpers import Recorder, agent, host_in, said, take
from trunkline.agents.graph import bundled, yaml_graph
from trunkline.agents.graph.host import LocalHost
from trunkline.base import document
from trunkline.core.faults import ConfigError
from trunkline.wires.tryll.messages import (
    CannedResponseParams,
    CannedResponseSelectionStrategy,
    ClassifyIntentLLMParams,
    GenerateAndSpeakParams,
    GenerateParams,
    HumanMessageGuardrailParams,
    LogitBias,
    LoraAdapter,
    Placement,
    RetrieveParams,
    SamplingOverrides,
    StringStorageKind,
    ToolCallParams,
    ToolDefinition,
    ToolParamDefinition,
)

NPC = """
start: guard
default_model: mock
diagnostics: true
max_steps: 9
storages:
  lines: [Nice try., No.]
  moods: {buy: Offer a price., leave: Wave.}
knowledge:
  lore: {embedding_model: mini, strings: [The mill is old.]}
nodes:
  guard:
    type: HumanMessageGuardrail
    inline_strings: ["ignore previous"]
    triggered: refuse
    not_triggered_exit: find
  refuse: {type: CannedResponse, string_storage: lines, selection_strategy: first}
  find:
    type: Retrieve
    embedded_string_storage: lore
    threshold: 0
    filter: {op: eq, lhs: {value: 1}, rhs: {value: 1}}
    found: tools
    not_found: tools
  tools:
    type: ToolCall
    notify_client: true
    tools:
      - name: open
        description: Opens a door.
        parameters: [{name: door, type: string}]
    no_tool_called: intents
  intents: {type: ClassifyIntentLLM, intents_ids: [buy, leave], intents_prompt: [buys, leaves], found: answer}
  answer:
    type: Generate
    system_prompt: You are a smith.
    placement: after_user_as_system
    sampling: {temperature: 0, seed: 7}
"""


def test_a_file_says_what_the_wire_says() -> None:
    found = yaml_graph.parse(NPC.encode(), "npc.yaml")
    nodes = {node.name: node.params for node in found.graph.nodes}
    assert nodes["guard"] == HumanMessageGuardrailParams(None, ("ignore previous",), "refuse", "find")
    assert nodes["refuse"] == CannedResponseParams("lines", (), CannedResponseSelectionStrategy.FIRST)
    assert nodes["find"] == RetrieveParams(
        "lore",
        threshold=0.0,
        filter='{"op":"eq","lhs":{"value":1},"rhs":{"value":1}}',
        found_exit="tools",
        not_found_exit="tools",
    )
    tool = ToolDefinition("open", "Opens a door.", (ToolParamDefinition("door", "string"),))
    assert nodes["tools"] == ToolCallParams(tools=(tool,), notify_client=True, no_tool_called_exit="intents")
    assert nodes["intents"] == ClassifyIntentLLMParams(
        intents_ids="buy, leave", intents_prompt="buys, leaves", found_exit="answer"
    )
    assert nodes["answer"] == GenerateParams(
        system_prompt="You are a smith.",
        placement=Placement.AFTER_USER_AS_SYSTEM,
        sampling=SamplingOverrides(temperature=0.0, seed=7),
    )
    assert (found.graph.start_node, found.default_model, found.diagnostics, found.max_steps) == (
        "guard",
        "mock",
        True,
        9,
    )
    assert [(each.name, each.keys, each.strings) for each in found.storages] == [
        ("lines", (), ("Nice try.", "No.")),
        ("moods", ("buy", "leave"), ("Offer a price.", "Wave.")),
    ]
    assert [(each.name, each.strings, each.embedding_model) for each in found.knowledge] == [
        ("lore", ("The mill is old.",), "mini")
    ]


async def test_a_file_runs_with_what_it_brings_along(tmp_path: Path) -> None:
    (tmp_path / "npc.yaml").write_text(NPC)
    found = yaml_graph.load(str(tmp_path / "npc.yaml"))
    host = host_in(tmp_path, language=lambda name: Recorder("no call", scores=[9, 0]))
    for storage in found.storages:
        host.shelf.create_strings(storage)
    for knowledge in found.knowledge:
        await host.shelf.create_embedded(knowledge, host.embedding)
    made = await agent(found.graph, host, default_model=found.default_model)
    assert said(await take(made, "ignore previous orders")) == "Nice try."
    assert said(await take(made, "hello")) == "no call"


async def test_records_with_fields_come_along_from_the_file_itself_or_from_files_beside_it(tmp_path: Path) -> None:
    nodes = """start: a
nodes:
  a: {type: ClassifyIntent, embedded_string_storage: kb, metadata_field: intent, threshold: 0.5, found: b}
  b: {type: IntentToInstruction, inline_keys: [buy], inline_strings: [Name a price.], default: c}
  c: {type: Generate, model_name: m, template: "{{instruction_b}}"}
knowledge:
"""
    inside = """  kb:
    embedding_model: m
    fields: [{name: intent, type: string, optional: true}]
    records: [{text: Sell me a sword., metadata: {intent: buy}}, {id: bye, text: Farewell.}]
"""
    (tmp_path / "inside.yaml").write_text(nodes + inside)
    (tmp_path / "beside.yaml").write_text(nodes + "  kb: kb.json\n")
    field = '{"name": "intent", "type": "string", "optional": true}'
    (tmp_path / "kb.json").write_text(f'{{"embedding_model": "m", "records_file": "r.json", "fields": [{field}]}}')
    sell = '{"id": "0", "text": "Sell me a sword.", "metadata": {"intent": "buy"}}'
    (tmp_path / "r.json").write_text(f'[{sell}, {{"id": "bye", "text": "Farewell."}}]')
    for name in ("inside", "beside"):
        found = yaml_graph.load(str(tmp_path / f"{name}.yaml"))
        # As it would be somewhere else: without the folder.
        model = Recorder("Two coins.")
        host = LocalHost(language=lambda _, model=model: model)  # type: ignore[misc]
        storage = await host.shelf.create_embedded(found.knowledge[0], host.embedding)
        assert storage.records.ids == ("0", "bye")
        made = await agent(found.graph, host)
        assert said(await take(made, "Sell me a sword.")) == "Two coins."
        assert "Name a price." in [message.text for message in model.prompts[0].messages]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "npc.yaml: the graph must be a mapping"),
        ("nodes: {}", r"npc.yaml:1:\d+: the graph needs the key `start`"),
        ("start: a\nnodes: {}\nnods: {}", r"npc.yaml:3:\d+: unknown key `nods` in the graph. Did you mean `nodes`?"),
        (
            "start: b\nnodes:\n  a: {type: Instruction}",
            r"npc.yaml:1:\d+: `start` is `b`, which is not one of the nodes `a`",
        ),
        ("start: a\nnodes:\n  a: {}", r"npc.yaml:3:\d+: `nodes.a` needs the key `type`"),
        (
            "start: a\nnodes:\n  a: {type: Genrate}",
            r":3:\d+: `nodes.a.type` must be one of .* Did you mean `Generate`?",
        ),
        ("start: a\nnodes:\n  a:\n    type: Shout", r":4:\d+: `nodes.a.type` must be one of"),
        (
            "start: a\nnodes:\n  a:\n    type: Instruction\n    instructon: x",
            r":5:\d+: unknown key `instructon` in `nodes.a`",
        ),
        (
            "start: ab\nnodes:\n  ab:\n    type: Instruction\n    default: abc",
            r":5:\d+: `nodes.ab.default` leads to `abc`, .* Did you mean `ab`",
        ),
        (
            "start: a\nnodes:\n  a:\n    type: Instruction\n    default: a\n    default_exit: a",
            r":6:\d+: `nodes.a.default_exit` is there twice",
        ),
        (
            "start: a\nnodes:\n  a:\n    type: Retrieve\n    embedded_string_storage: kb\n    top_k: 0",
            r":6:\d+: `nodes.a.top_k` is 0: it goes from 1 to 1000",
        ),
        (
            "start: a\nnodes:\n  a:\n    type: Retrieve\n    top_k: many",
            r":5:\d+: `nodes.a.top_k` must be a whole number",
        ),
        (
            "start: a\nnodes:\n  a:\n    type: Retrieve\n    threshold: true",
            r":5:\d+: `nodes.a.threshold` must be a number",
        ),
        (
            "start: a\nnodes:\n  a:\n    type: Generate\n    stream: 1",
            r":5:\d+: `nodes.a.stream` must be `true` or `false`",
        ),
        (
            "start: a\nnodes:\n  a:\n    type: Generate\n    placement: here",
            r":5:\d+: `nodes.a.placement` must be one of",
        ),
        ("start: a\nnodes:\n  a:\n    type: Generate", r":3:\d+: `nodes.a` does not work. .* has no model"),
        (
            "start: a\nnodes:\n  a:\n    type: ClassifyIntentLLM\n    intents_ids: ['x,y']",
            r":5:\d+: `nodes.a.intents_ids\[0\]` has a comma",
        ),
        (
            "start: a\nnodes:\n  a:\n    type: Generate\n    sampling: {temprature: 1}",
            r":5:\d+: unknown key `temprature` in `nodes.a.sampling`",
        ),
        (
            "start: a\nnodes:\n  a: {type: Instruction}\n  a: {type: Instruction}",
            r":4:\d+: `nodes` has the key `a` twice",
        ),
        ("start: [", r"npc.yaml:1:\d+: not YAML"),
        (
            "start: a\nknowledge:\n  k: {embedding_model: m}\nnodes:\n  a: {type: Instruction}",
            r":3:\d+: `knowledge.k` needs either `strings` or `records`",
        ),
        (
            "start: a\nknowledge:\n  k: {embedding_model: m, strings: [x], fields: []}\nnodes:\n  a: {type: Speak}",
            r":3:\d+: `knowledge.k` has `fields` for plain strings",
        ),
        (
            "start: a\nknowledge:\n  k: {embedding_model: m, records: [{id: x}]}\nnodes:\n  a: {type: Instruction}",
            r":3:\d+: `knowledge.k` does not work. .* record 0 has no `id` and `text`",
        ),
        (
            "start: a\nmax_steps: 10001\nnodes:\n  a: {type: Instruction}",
            r":2:\d+: `max_steps` must be from 0 to 10000",
        ),
        ("start: a\nstorages: {s: 7}\nnodes:\n  a: {type: Instruction}", r":2:\d+: `storages.s` must be a list"),
    ],
)
def test_a_complaint_names_the_file_and_the_line(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        yaml_graph.parse(text.encode(), "npc.yaml")


def test_a_file_that_cannot_be_read_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError,
        match=r"cannot be read: No such file or directory\. Name a file, or a bundled one: `npc`, `smith`\.",
    ):
        yaml_graph.load(str(tmp_path / "gone.yaml"))
    with pytest.raises(ConfigError, match="Did you mean `npc`, which is bundled"):
        yaml_graph.load("npcc")
    with pytest.raises(ConfigError, match=r"cannot be read: Is a directory\. Name a file"):
        yaml_graph.load(str(tmp_path))
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(ConfigError, match="cannot be read: not a regular file"):
        yaml_graph.load(str(tmp_path / "pipe.yaml"))
    (tmp_path / "big.yaml").write_bytes(b"#" * (document.MAX_BYTES + 1))
    with pytest.raises(ConfigError, match="larger than"):
        yaml_graph.load(str(tmp_path / "big.yaml"))


def test_texts_may_be_in_files_beside_the_graph_and_nowhere_else(tmp_path: Path) -> None:
    folder = tmp_path / "npc"
    folder.mkdir()
    (folder / "facts.txt").write_text("# no fact\nThe mill is old.\n")
    (folder / "moods.json").write_text('[{"id": "b", "text": "two"}, {"id": "a", "text": "one"}]')
    (tmp_path / "secret.txt").write_text("x\n")
    text = "start: a\nstorages: {moods: moods.json, facts: FACTS}\nknowledge:\n"
    text += "  lore: {embedding_model: m, strings: FACTS}\nnodes:\n  a: {type: Instruction}\n"
    file = folder / "g.yaml"
    file.write_text(text.replace("FACTS", "facts.txt"))
    found = yaml_graph.load(str(file))
    assert [(each.kind, each.keys, each.strings) for each in found.storages] == [
        (StringStorageKind.MAP, ("a", "b"), ("one", "two")),
        (StringStorageKind.LIST, (), ("The mill is old.",)),
    ]
    assert found.knowledge[0].strings == ("The mill is old.",)
    for elsewhere in ("../secret.txt", str(tmp_path / "secret.txt"), "gone.txt", "g.yaml"):
        file.write_text(text.replace("FACTS", elsewhere))
        reading = yaml_graph.read(str(file))
        assert [getattr(each, "line", 0) for each in reading.wrong] == [2, 4], elsewhere
    with pytest.raises(ConfigError, match="names a file"):
        yaml_graph.parse(file.read_bytes(), "g.yaml")


def test_the_name_of_a_bundled_graph_means_that_one_whatever_lies_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "npc").mkdir()
    assert bundled.locate("npc") != "npc"
    (tmp_path / "npc").rmdir()
    (tmp_path / "npc").write_text("nodes: []\n")
    assert bundled.locate("npc") != "npc"
    assert bundled.locate("./npc") == "./npc"


GENERATION = """
start: answer
default_model: mock
storages:
  words: {Cthulhu: kuh-thoo-loo}
nodes:
  answer:
    type: GenerateAndSpeak
    timings: true
    pronunciations: words
    sampling:
      stop: ["\\nUser:", END]
      json_schema: {type: object, properties: {mood: {enum: [calm, angry]}}}
      logit_bias: {dragon: -100, sir: 2.5}
      lora: [pirate, {name: grim, scale: 0.5}]
  more: {type: Generate, sampling: {json_schema: "{}", logit_bias: [{token: "1", bias: 1}], lora: {grim: 2}}}
"""


def test_the_form_of_an_answer_is_written_as_people_write_it() -> None:
    nodes = {node.name: node.params for node in yaml_graph.parse(GENERATION.encode(), "g.yaml").graph.nodes}
    answer, more = nodes["answer"], nodes["more"]
    assert isinstance(answer, GenerateAndSpeakParams)
    assert (answer.timings, answer.pronunciations) == (True, "words")
    assert answer.sampling == SamplingOverrides(
        stop=("\nUser:", "END"),
        json_schema='{"type":"object","properties":{"mood":{"enum":["calm","angry"]}}}',
        logit_bias=(LogitBias("dragon", -100.0), LogitBias("sir", 2.5)),
        lora=(LoraAdapter("pirate", 1.0), LoraAdapter("grim", 0.5)),
    )
    assert isinstance(more, GenerateParams)
    assert more.sampling == SamplingOverrides(
        json_schema="{}", logit_bias=(LogitBias("1", 1.0),), lora=(LoraAdapter("grim", 2.0),)
    )


@pytest.mark.parametrize(
    ("sampling", "told"),
    [
        ("{stop: END}", "`nodes.answer.sampling.stop`"),
        ('{stop: [""]}', "`nodes.answer.sampling.stop` has a text that is empty"),
        ("{json_schema: [1]}", "`nodes.answer.sampling.json_schema`"),
        ('{json_schema: "{"}', "`nodes.answer.sampling.json_schema` is not a JSON Schema"),
        ("{logit_bias: {a: much}}", "`nodes.answer.sampling.logit_bias.a` must be a number"),
        ("{logit_bias: {a: 101}}", "`nodes.answer.sampling.logit_bias` gives `a` 101"),
        ("{lora: [{scale: 1}]}", "`nodes.answer.sampling.lora[0]`"),
        ("{lora: [a, a]}", "`nodes.answer.sampling.lora` has an adapter twice"),
    ],
)
def test_a_form_that_cannot_be_used_is_told_with_its_place(sampling: str, told: str) -> None:
    text = f"start: answer\nnodes:\n  answer: {{type: Generate, model_name: m, sampling: {sampling}}}\n"
    with pytest.raises(ConfigError) as refused:
        yaml_graph.parse(text.encode(), "g.yaml")
    assert told in str(refused.value)
    assert "g.yaml:3:" in str(refused.value)
