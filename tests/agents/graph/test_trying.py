"""Written conversations of a graph, held and compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from trunkline.agents.graph import bundled, yaml_graph
from trunkline.agents.graph.trying import Failure, GraphTester, TriedTest
from trunkline.core.faults import ConfigError

GRAPH = """start: guard
default_model: mock
memories: {player: {embedding_model: mini, file: player.jsonl}}
knowledge:
  intents:
    embedding_model: mini
    fields: [{name: intent, type: string, optional: true}]
    records: [{text: I want to buy a sword, metadata: {intent: buy}}]
nodes:
  guard: {type: HumanMessageGuardrail, inline_strings: [bad], triggered: refuse, not_triggered: wants}
  refuse: {type: CannedResponse, inline_strings: ["No."]}
  wants:
    type: ClassifyIntent
    embedded_string_storage: intents
    metadata_field: intent
    threshold: 0.7
    found: tools
    not_found: answer
  tools:
    type: ToolCall
    tools: [{name: sword, parameters: [{name: what}, {name: count, type: integer}]}]
    tool_called: agree
    no_tool_called: agree
  agree: {type: CannedResponse, inline_strings: [Twelve silver.]}
  answer: {type: Generate, default: keep}
  keep: {type: Remember, memory: player}
tests:
  - name: it
    turns:
      - say: SAY
        expect: {EXPECT}
"""


async def tried(tmp_path: Path, say: str, expect: str, text: str = GRAPH, **how: object) -> TriedTest:
    (tmp_path / "g.yaml").write_text(text.replace("SAY", say).replace("EXPECT", expect))
    file = yaml_graph.load(str(tmp_path / "g.yaml"))
    async with GraphTester(file, "graph:g.yaml", str(tmp_path), **how) as tester:  # type: ignore[arg-type]
        return await tester.run(file.tests[0])


def failures(found: TriedTest) -> list[Failure]:
    return [each for turn in found.turns for each in turn.failures]


@pytest.mark.parametrize(
    ("say", "expect"),
    [
        ("something bad", "text: 'no', path: [guard, refuse], visits: refuse, avoids: [wants, tools], tool: none"),
        ("hello there", "text: [said, '/^you SAID: hello/'], not_text: [silver, /^hello/], intent: none"),
        ("hello there", "path: [wants], status: success"),
        ("I want to buy a sword", "intent: buy, path: [tools, agree], text: Twelve"),
        ("I want to buy a sword", "tool: {name: sword, arguments: {what: /buy a/, count: 1}}"),
        ("My name is Ann", "memory: {player: [ann, /name is/]}, tool: none"),
    ],
)
async def test_what_happens_as_expected_passes(tmp_path: Path, say: str, expect: str) -> None:
    found = await tried(tmp_path, say, expect)
    assert (failures(found), found.outcome) == ([], "passed")


@pytest.mark.parametrize(
    ("say", "expect", "happened"),
    [
        ("something bad", "text: never", 'the answer was "No."'),
        ("something bad", "not_text: 'no'", 'the answer was "No."'),
        ("something bad", "path: [refuse, guard]", "the path was [guard, refuse]"),
        ("something bad", "path: [guard, wants]", "the path was [guard, refuse]"),
        ("something bad", "visits: [guard, agree]", "the path was [guard, refuse]"),
        ("something bad", "avoids: guard", "the path was [guard, refuse]"),
        ("something bad", "tool: sword", "it called no tool"),
        ("something bad", "intent: buy", "the intent was none"),
        ("something bad", "status: error", "it ended with success"),
        ("something bad", "memory: {player: Ann}", "it holds []"),
        ("I want to buy a sword", "tool: none", "it called sword {'what': 'I want to buy a sword', 'count': 1}"),
        ("I want to buy a sword", "tool: {name: sword, arguments: {what: sword}}", "it called sword"),
        ("I want to buy a sword", "intent: sell", "the intent was buy"),
    ],
)
async def test_what_does_not_fails_with_what_happened_and_its_place(
    tmp_path: Path, say: str, expect: str, happened: str
) -> None:
    found = await tried(tmp_path, say, expect)
    (failure,) = failures(found)
    assert found.outcome == "failed"
    assert failure.happened.startswith(happened)
    assert failure.place is not None
    assert failure.place.line == 31
    assert failure.expected.split(":")[0] == expect.split(":")[0]


async def test_a_turn_that_fails_is_expected_or_a_failure(tmp_path: Path) -> None:
    loop = GRAPH.replace("refuse: {type: CannedResponse, inline_strings: [\"No.\"]}",
                         "refuse: {type: CannedResponse, inline_strings: [\"No.\"], default: guard}")  # fmt: skip
    found = await tried(tmp_path, "bad", "text: 'no'", loop)
    (failure,) = failures(found)
    assert failure.happened.startswith("it ended with error: The turn ran 64 nodes")
    assert failures(await tried(tmp_path, "bad", "status: error", loop)) == []


async def test_each_test_begins_anew_and_remembers_within_itself(tmp_path: Path) -> None:
    text = (
        GRAPH[: GRAPH.index("tests:")]
        + """tests:
  - name: first
    turns: [{say: My name is Ann}, {say: hello again, expect: {memory: {player: Ann}}}]
  - name: second
    turns: [{say: I have a dog, expect: {memory: {player: Ann}}}]
"""
    )
    (tmp_path / "g.yaml").write_text(text)
    (tmp_path / "player.jsonl").write_text('{"trunkline_memory":1}\n')
    file = yaml_graph.load(str(tmp_path / "g.yaml"))
    async with GraphTester(file, "graph:g.yaml", str(tmp_path)) as tester:
        found = [await tester.run(test) for test in file.tests]
    assert [each.outcome for each in found] == ["passed", "failed"]
    # What players told is not mixed with what tests do.
    assert (tmp_path / "player.jsonl").read_text() == '{"trunkline_memory":1}\n'


async def test_a_test_for_other_models_is_skipped(tmp_path: Path) -> None:
    found = await tried(tmp_path, "bad", "text: never", GRAPH.replace("name: it", "name: it\n    models: real"))
    assert (found.outcome, found.turns, found.why) == ("skipped", (), "it needs real models")


async def test_a_model_that_is_not_there_keeps_all_from_running(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        await tried(tmp_path, "x", "text: x", GRAPH.replace("default_model: mock", "default_model: nowhere"))
    found = await tried(tmp_path, "bad", "text: 'no'", GRAPH.replace("default_model: mock", "default_model: nowhere"),
                        model="mock")  # fmt: skip
    assert found.outcome == "passed"


async def test_a_pattern_that_takes_too_long_is_a_failure_and_no_wait(tmp_path: Path) -> None:
    found = await tried(tmp_path, "x" * 5000, "text: '/(x+x+)+y/'")
    (failure,) = failures(found)
    assert "it takes too long" in failure.happened


async def test_the_seed_is_that_of_every_node_that_samples(tmp_path: Path) -> None:
    (tmp_path / "g.yaml").write_text(GRAPH.replace("SAY", "x").replace("EXPECT", ""))
    file = yaml_graph.load(str(tmp_path / "g.yaml"))
    tester = GraphTester(file, "graph:g.yaml", str(tmp_path), seed=7)
    seeds = {
        node.name: node.params.sampling.seed  # type: ignore[union-attr]
        for node in tester.file.graph.nodes
        if getattr(node.params, "sampling", None) is not None
    }
    assert seeds == {"tools": 7, "answer": 7, "keep": 7}


@pytest.mark.parametrize("name", bundled.names())
async def test_the_graphs_that_come_along_pass_with_the_mock_engine(name: str) -> None:
    file = yaml_graph.load(name)
    async with GraphTester(file, f"graph:{name}", bundled.folder_of(name), model="mock") as tester:
        found = [await tester.run(test) for test in file.tests]
    assert [each.test.name for each in found if each.outcome == "failed"] == []
    assert sum(each.outcome == "passed" for each in found) >= 3
