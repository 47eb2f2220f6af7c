"""All that is wrong with a graph's file at once, and all that looks wrong."""

from __future__ import annotations

from pathlib import Path
from time import process_time

import pytest

from trunkline.agents.graph import bundled
from trunkline.agents.graph.yaml_check import GraphReport, examine, examine_data
from trunkline.agents.graph.yaml_graph import MAX_COMPLAINTS

BROKEN = """start: nobody
defualt_model: x
max_steps: -1
storages: {lines: 7, more: [1, x, 2], map: {a: 1, b: 2}}
nodes:
  guard:
    type: HumanMessageGuardrail
    inline_strings: ["(", 1, null, fine]
    triggered: refuze
    not_triggered: 7
  refuse: {type: CannedResponse, selection_strategy: best, inline_strings: 3}
  lore:
    type: Retrieve
    top_k: 0
    threshold: 2
    colour: red
  answer:
    type: Generate
    sampling: {temperature: 9, seed: -1}
    template: "{{#a}}"
  more:
    type: Generate
    sampling: {max_tokens: 1e3, colour: 1, seed: -1, top_k: 1.5}
    template: "{{#a}}"
  intent: {type: ClassifyIntentLLM, intents_ids: [1, "a,b", c]}
  tools: {type: ToolCall, tools: [{name: 1, description: 2, parameters: [{name: 3, sort: x}]}]}
"""

KNOWLEDGE = """knowledge:
  kb:
    embedding_model: m
    fields: [{name: intent, type: string, optional: true}, {name: level, type: int, default: 1}]
    records: [{text: Sell me a sword., metadata: {intent: buy}}]
"""


def examined(tmp_path: Path, text: str) -> GraphReport:
    (tmp_path / "g.yaml").write_text(text)
    return examine(str(tmp_path / "g.yaml"))


def test_everything_that_is_wrong_is_told_at_once_with_its_line_node_and_key(tmp_path: Path) -> None:
    report = examined(tmp_path, BROKEN)
    assert report.graph is None
    found = [(each.line, each.node, each.key) for each in report.problems]
    assert found == [
        (1, "", "start"),
        (2, "", ""),
        (3, "", "max_steps"),
        (4, "", "storages.lines"),
        (4, "", "storages.more.0"),
        (4, "", "storages.more.2"),
        (4, "", "storages.map.a"),
        (4, "", "storages.map.b"),
        (8, "guard", "inline_strings.1"),
        (8, "guard", "inline_strings.2"),
        (9, "guard", "triggered"),
        (10, "guard", "not_triggered"),
        (11, "refuse", "selection_strategy"),
        (11, "refuse", "inline_strings"),
        (14, "lore", "top_k"),
        (15, "lore", "threshold"),
        (16, "lore", ""),
        (17, "answer", ""),
        (19, "answer", "sampling.temperature"),
        (19, "answer", "sampling.seed"),
        (20, "answer", "template"),
        (23, "more", "sampling.max_tokens"),
        (23, "more", "sampling"),
        (23, "more", "sampling.seed"),
        (23, "more", "sampling.top_k"),
        (24, "more", "template"),
        (25, "intent", "intents_ids.0"),
        (25, "intent", "intents_ids.1"),
        (26, "tools", "tools.0.name"),
        (26, "tools", "tools.0.description"),
        (26, "tools", "tools.0.parameters.0.name"),
        (26, "tools", "tools.0.parameters.0"),
    ]
    assert all(each.file.endswith("g.yaml") and each.text in each.told for each in report.problems)
    assert "Did you mean `refuse`?" in report.problems[10].text


@pytest.mark.parametrize(
    ("node", "line", "key", "told"),
    [
        ("type: HumanMessageGuardrail\n    inline_strings: ['(']", 5, "inline_strings", "pattern 0"),
        ("type: Generate\n    template: '{{#a}}'\n    model_name: m", 5, "template", "its template"),
        ("type: Retrieve\n    top_k: 0\n    embedded_string_storage: kb", 5, "top_k", "from 1 to 1000"),
        ("type: ToolCall\n    tool_call_format: xml\n    model_name: m", 5, "tool_call_format", "must be one of"),
        (
            "type: Retrieve\n    embedded_string_storage: kb\n    filter: {op: shout}",
            6,
            "filter",
            "filter.",
        ),
        (
            "type: ClassifyIntent\n    embedded_string_storage: kb\n    metadata_field: intend",
            6,
            "metadata_field",
            "no field `intend`",
        ),
        (
            "type: ClassifyIntent\n    embedded_string_storage: kb\n    metadata_field: level",
            6,
            "metadata_field",
            "must be string",
        ),
        (
            "type: ToolCall\n    model_name: m\n    tools: [{name: x, parameters: {type: object}}]",
            6,
            "tools.0.parameters",
            "must be a list of {name, type, description}",
        ),
        (
            "type: Generate\n    model_name: m\n    sampling: {max_tokens: 1048577}",
            6,
            "sampling.max_tokens",
            "is 1048577: it goes from 1 to 1048576.",
        ),
        (
            f"type: Generate\n    model_name: m\n    sampling: {{seed: 0x{'f' * 5000}}}",
            6,
            "sampling.seed",
            "is a number of more digits than can be: it goes from 0 to 4294967295.",
        ),
        (
            f"type: Retrieve\n    embedded_string_storage: kb\n    threshold: 0x{'f' * 5000}",
            6,
            "threshold",
            "is too large a number.",
        ),
        ("type: ToolCall\n    model_name: m\n    tools: [open]", 6, "tools", "must be a list of {name, description,"),
        ("type: IntentToInstruction\n    string_storage: lines", 5, "string_storage", "which is not a Map"),
    ],
)
def test_what_a_node_says_of_itself_is_told_of_its_key(
    tmp_path: Path, node: str, line: int, key: str, told: str
) -> None:
    report = examined(tmp_path, f"start: a\nnodes:\n  a:\n    {node}\nstorages: {{lines: [x]}}\n{KNOWLEDGE}")
    (problem,) = report.problems
    assert (problem.line, problem.node, problem.key) == (line, "a", key)
    assert told in problem.told


def test_storages_in_files_beside_the_graph_are_opened_and_those_of_others_are_not(tmp_path: Path) -> None:
    text = """start: a
nodes:
  a: {type: HumanMessageGuardrail, string_storage: patterns.txt, triggered: b, not_triggered: b}
  b: {type: ClassifyIntent, embedded_string_storage: kb.json, metadata_field: intent, found: c}
  c: {type: ClassifyIntent, embedded_string_storage: brought-by-others, metadata_field: any}
"""
    (tmp_path / "patterns.txt").write_text("fine\n(\n")
    (tmp_path / "kb.json").write_text('{"embedding_model": "m", "records_file": "records.json"}')
    (tmp_path / "records.json").write_text('[{"id": "1", "text": "a"}]')
    problems = examined(tmp_path, text).problems
    assert [(each.line, each.node, each.key) for each in problems] == [
        (3, "a", "string_storage"),
        (4, "b", "metadata_field"),
    ]
    assert ["pattern 1" in problems[0].told, "no field `intent`" in problems[1].told] == [True, True]


def test_the_graphs_that_come_along_are_fine() -> None:
    assert bundled.names() == ["npc", "smith"]
    for name in bundled.names():
        report = examine(name)
        assert (report.problems, report.warnings) == ((), ())


def test_no_file_of_the_current_directory_takes_the_place_of_a_graph_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "npc").write_text("not a graph")
    assert not examine("npc").problems
    assert examine("./npc").problems


def test_a_file_that_cannot_be_read_or_is_no_yaml_is_one_problem(tmp_path: Path) -> None:
    (problem,) = examine(str(tmp_path / "gone.yaml")).problems
    assert (problem.line, "cannot be read" in problem.told) == (0, True)
    (problem,) = examined(tmp_path, "start: a\nnodes: [").problems
    assert (problem.line, "not YAML" in problem.told) == (2, True)
    (problem,) = examined(tmp_path, "- a").problems
    assert "the graph must be a mapping" in problem.told


@pytest.mark.slow
def test_a_file_that_is_wrong_all_over_is_not_looked_at_forever(tmp_path: Path) -> None:
    name = "n" * 30
    nodes = [f"  {name}{number}: {{type: Instruction, default: {name}x{number}, colour: red}}" for number in range(120)]
    began = process_time()
    assert len(examined(tmp_path, "\n".join(["start: a", "nodes:", *nodes])).problems) == MAX_COMPLAINTS
    (problem,) = examined(
        tmp_path, "\n".join(["start: a", "nodes:", *(f"  a{each}: 1" for each in range(2_000))])
    ).problems
    assert "and may have 256" in problem.told
    keys = "\n".join(f"k{number}: 1" for number in range(2_000))
    assert len(examined(tmp_path, keys).problems) == MAX_COMPLAINTS
    assert process_time() - began < 10


def test_what_no_turn_comes_to_and_what_never_ends_are_warnings(tmp_path: Path) -> None:
    text = """start: a
nodes:
  a: {type: Instruction, default: b}
  b: {type: Instruction, default: a}
  c: {type: Instruction, default: d}
  d: {type: Instruction}
"""
    report = examined(tmp_path, text)
    assert report.graph is not None
    assert [(each.node, each.line) for each in report.warnings] == [("a", 3), ("b", 4), ("c", 5), ("d", 6)]
    assert ["no path to the end" in each.text for each in report.warnings] == [True, True, False, False]
    assert ["no turn can reach" in each.text for each in report.warnings] == [False, False, True, True]


def test_storages_that_are_not_there_or_not_used_are_warnings(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("x\n")
    text = """start: a
storages: {refusals: [No.], unused: [x]}
nodes:
  a: {type: CannedResponse, string_storage: refusal, default: b}
  b: {type: CannedResponse, string_storage: lines.txt, default: c}
  c: {type: CannedResponse, string_storage: refusals, default: d}
  d: {type: Retrieve, embedded_string_storage: lore}
"""
    report = examined(tmp_path, text)
    assert [(each.line, each.node, each.key) for each in report.warnings] == [
        (2, "", "storages.unused"),
        (4, "a", "string_storage"),
        (7, "d", "embedded_string_storage"),
    ]
    assert "Did you mean `refusals`?" in report.warnings[1].text


def test_memories_that_are_not_there_or_not_used_are_warnings(tmp_path: Path) -> None:
    text = """start: a
memories:
  player: {embedding_model: m, file: player.jsonl}
  unused: {embedding_model: m, file: unused.jsonl}
nodes:
  a: {type: Retrieve, embedded_string_storage: player, found: b, not_found: b}
  b: {type: Remember, memory: plaier, default: c}
  c: {type: Remember, memory: player}
"""
    report = examined(tmp_path, text)
    assert [(each.line, each.node, each.key) for each in report.warnings] == [
        (4, "", "memories.unused"),
        (7, "b", "memory"),
    ]
    assert "Did you mean `player`?" in report.warnings[1].text
    assert not list(tmp_path.glob("*.jsonl"))


def test_a_memory_that_a_node_or_a_file_makes_impossible_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "player.jsonl").write_text("mine\n")
    text = """start: a
default_model: mock
memories: {player: {embedding_model: m, file: player.jsonl}}
knowledge: {lore: {embedding_model: m, strings: [x]}}
nodes:
  a: {type: Remember, memory: lore}
"""
    report = examined(tmp_path, text)
    assert [(each.line, each.key) for each in report.problems] == [(3, "memories.player.file"), (6, "memory")]


def test_a_model_that_is_asked_to_remember_before_the_answer_is_a_warning(tmp_path: Path) -> None:
    text = """start: a
default_model: mock
memories: {player: {embedding_model: m, file: player.jsonl}}
nodes:
  a: {type: Remember, memory: player, system_prompt: x, default: b}
  b: {type: Generate, default: c}
  c: {type: Remember, memory: player, system_prompt: x}
"""
    (warning,) = examined(tmp_path, text).warnings
    assert (warning.node, "before `b` answers" in warning.text) == ("a", True)


def test_tests_are_checked_with_the_rest(tmp_path: Path) -> None:
    text = "start: a\nnodes:\n  a: {type: Instruction}\ntests: [{name: x, turns: [{say: x, expect: {path: [b]}}]}]\n"
    (problem,) = examined(tmp_path, text).problems
    assert (problem.line, problem.key) == (4, "tests.0.turns.0.expect.path.0")


def test_a_text_that_is_in_no_file_is_examined_as_one_that_is(tmp_path: Path) -> None:
    text = "start: a\nstorages: {lines: lines.txt}\nnodes:\n  a: {type: CannedResponse, string_storage: lines}\n"
    (wrong,) = examine_data(text.encode(), "new.yaml", str(tmp_path)).problems
    assert wrong.told.startswith("new.yaml:2:12: `storages.lines` does not work.")
    (tmp_path / "lines.txt").write_text("Yes.\n")
    report = examine_data(text.encode(), "new.yaml", str(tmp_path))
    assert report == examined(tmp_path, text)
    assert report.lines == {"a": 4}


def test_the_lines_of_nodes_in_json_are_not_looked_for(tmp_path: Path) -> None:
    text = b'{"start": "a", "nodes": {"a": {"type": "CannedResponse", "inline_strings": ["Yes."]}}}'
    report = examine_data(text, "new.json", str(tmp_path))
    assert report.graph is not None
    assert report.lines == {}
