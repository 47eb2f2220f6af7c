"""Tests in a graph's file: read, and complained of with their places."""

from __future__ import annotations

import pytest

from trunkline.agents.graph import yaml_graph
from trunkline.agents.graph.written_tests import MAX_TESTS, MAX_TURNS, Expectation, WrittenTest
from trunkline.base.place import Place

GRAPH = """start: guard
default_model: mock
memories: {player: {embedding_model: mini, file: player.jsonl}}
nodes:
  guard: {type: HumanMessageGuardrail, inline_strings: [bad], triggered: refuse, not_triggered: tools}
  refuse: {type: CannedResponse, inline_strings: ["No."]}
  tools: {type: ToolCall, tools: [{name: sell}], tool_called: keep, no_tool_called: keep}
  keep: {type: Remember, memory: player}
"""


def read(text: str) -> tuple[WrittenTest, ...]:
    return yaml_graph.parse((GRAPH + text).encode(), "g.yaml").tests


def wrong(text: str) -> list[str]:
    return [str(each) for each in yaml_graph.read_data((GRAPH + text).encode(), "g.yaml", None).wrong]


def expecting(text: str) -> str:
    return f"tests:\n  - name: a\n    turns:\n      - say: hi\n        expect: {{{text}}}\n"


def test_all_that_can_be_expected_is_read_with_its_place() -> None:
    (test,) = read(
        expecting(
            "text: [Hello, /w.rld/], not_text: Never, path: [guard, tools], visits: keep, avoids: [refuse], "
            "tool: {name: sell, arguments: {count: 2, fine: true}}, intent: buy, status: success, memory: {player: Ann}"
        )
    )
    (turn,) = test.turns
    assert (test.name, test.models, test.place, turn.say, turn.place) == (
        "a", "any", Place(10, 5), "hi", Place(12, 9),
    )  # fmt: skip
    assert [(each.key, each.wanted) for each in turn.expect] == [
        ("text", ("Hello",)), ("text", ("/w.rld/",)), ("not_text", ("Never",)), ("path", ("guard", "tools")),
        ("visits", ("keep",)), ("avoids", ("refuse",)), ("tool", ("sell",)), ("intent", ("buy",)),
        ("status", ("success",)), ("memory", ("player", "Ann")),
    ]  # fmt: skip
    assert turn.expect[6].arguments == {"count": "2", "fine": "true"}
    assert turn.expect[0].place == Place(13, 25)


def test_a_file_without_tests_has_none_and_no_tool_can_be_expected() -> None:
    assert read("") == ()
    (test,) = read(expecting("tool: none"))
    assert [each.wanted for each in test.turns[0].expect] == [("none",)]


@pytest.mark.parametrize(
    ("expected", "told"),
    [
        ("texst: a", "g.yaml:13:18: unknown key `texst` in `tests[0].turns[0].expect`. Did you mean `text`?"),
        ("path: [gard]", "g.yaml:13:25: `tests[0].turns[0].expect.path[0]` names `gard`, which is not a node. Did you"),
        ("path: guard", "must be a list"),
        ("visits: nowhere", "which is not a node"),
        ("tool: sel", "names `sel`, which is not a tool of the graph. Did you mean `sell`?"),
        ("tool: {arguments: {}}", "needs the key `name`"),
        ("tool: {name: sell, argument: {}}", "unknown key `argument`"),
        ("status: fine", "must be one of `success`, `error`"),
        ("memory: {playr: a}", "names `playr`, which is not in `memories`. Did you mean `player`?"),
        ("memory: a", "must be a mapping"),
        ("text: '/(/'", "is not a regular expression that can be used"),
        ("text: ''", "must not be empty"),
        ("text: 3", "must be a string, not a number. Put it in quotes."),
        ("intent: [a]", "must be a string"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_expectation_is_told_with_its_place(expected: str, told: str) -> None:
    found = wrong(expecting(expected))
    assert len(found) == 1
    assert told in found[0]
    assert found[0].startswith("g.yaml:13:")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tests: {}\n", "must be a list"),
        ("tests: []\n", "has 0 tests, and must have 1 to 1000."),
        ("tests: [{name: a}]\n", "needs the key `turns`"),
        ("tests: [{turns: [{say: hi}]}]\n", "needs the key `name`"),
        ("tests: [{name: a, turns: []}]\n", "has 0 turns, and must have 1 to 100."),
        ("tests: [{name: a, turns: [{}]}]\n", "needs the key `say`"),
        ("tests: [{name: a, turns: [{say: hi, expct: {}}]}]\n", "Did you mean `expect`?"),
        ("tests: [{name: a, models: large, turns: [{say: hi}]}]\n", "must be one of `any`, `mock`, `real`"),
        ("tests: [{name: a, turns: [{say: x}]}, {name: a, turns: [{say: x}]}]\n", "as that of another test"),
    ],
)
def test_what_is_wrong_with_a_test_is_told(text: str, told: str) -> None:
    found = wrong(text)
    assert len(found) == 1
    assert told in found[0]


def test_tests_and_turns_are_only_so_many() -> None:
    def many(tests: int, turns: int) -> str:
        each = ", ".join(["{say: x}"] * turns)
        return "tests: [" + ", ".join(f"{{name: t{at}, turns: [{each}]}}" for at in range(tests)) + "]\n"

    assert len(read(many(MAX_TESTS, 1))) == MAX_TESTS
    assert len(read(many(1, MAX_TURNS))[0].turns) == MAX_TURNS
    assert "1001 tests" in wrong(many(MAX_TESTS + 1, 1))[0]
    assert "101 turns" in wrong(many(1, MAX_TURNS + 1))[0]


def test_in_json_no_places_are_looked_for() -> None:
    text = """{"start": "a", "nodes": {"a": {"type": "Instruction"}},
               "tests": [{"name": "t", "turns": [{"say": "x", "expect": {"path": ["a"]}}]}]}"""
    (test,) = yaml_graph.parse(text.encode(), "g.json").tests
    assert (test.place, test.turns[0].expect) == (None, (Expectation("path", ("a",)),))


def test_a_node_that_is_wrong_is_no_reason_to_complain_of_the_tests_that_name_it() -> None:
    text = (GRAPH + expecting("path: [tools], tool: sell")).replace("type: ToolCall", "type: ToolCal")
    found = yaml_graph.read_data(text.encode(), "g.yaml", None).wrong
    assert [each.line for each in found] == [7]


# Memories.


@pytest.mark.parametrize(
    ("memory", "told"),
    [
        ("{embedding_model: mini}", "needs the key `file`"),
        ("{file: a.jsonl}", "needs the key `embedding_model`"),
        ("{embedding_model: mini, file: a.json}", "a name that ends in `.jsonl`"),
        ("{embedding_model: mini, file: ../a.jsonl}", "leads out of the storage folder"),
        ("{embedding_model: mini, file: /a.jsonl}", "is not relative to the storage folder"),
        ("{embedding_model: mini, file: a.jsonl, max_entries: 0}", "must be from 1 to 2000."),
        ("{embedding_model: mini, file: a.jsonl, max_entries: 2001}", "must be from 1 to 2000."),
        ("{embedding_model: mini, file: a.jsonl, strings: [a]}", "unknown key `strings`"),
    ],
)
def test_what_is_wrong_with_a_memory_is_told(memory: str, told: str) -> None:
    text = GRAPH.replace("{embedding_model: mini, file: player.jsonl}", memory)
    found = [str(each) for each in yaml_graph.read_data(text.encode(), "g.yaml", None).wrong]
    assert len(found) == 1
    assert told in found[0]
    assert found[0].startswith("g.yaml:3:")


def test_a_memory_says_how_many_entries_those_keep_that_do_not_say_it_themselves() -> None:
    text = GRAPH.replace("player.jsonl}", "player.jsonl, max_entries: 7}")
    own = "  more: {type: Remember, memory: player, max_entries: 9}\n"
    file = yaml_graph.parse((text + own).encode(), "g.yaml")
    assert [getattr(node.params, "max_entries", None) for node in file.graph.nodes[-2:]] == [7, 9]
    (memory,) = file.knowledge
    assert (memory.name, memory.embedding_model, memory.memory_path) == ("player", "mini", "player.jsonl")


def test_a_memory_does_not_have_the_name_of_other_knowledge() -> None:
    (told,) = wrong("knowledge: {player: {embedding_model: mini, strings: [a]}}\n")
    assert "has the name of a storage in `knowledge`" in told


# Directors.


def test_a_director_is_written_with_a_list_of_characters_and_a_strategy_by_name() -> None:
    file = yaml_graph.parse(
        b"start: talk\ndefault_model: mock\nnodes:\n  talk:\n    type: Director\n    strategy: model\n"
        b"    characters: [{name: Anna, system_prompt: An innkeeper.}, {name: Bert, model_name: big}]\n",
        "g.yaml",
    )
    params = file.graph.nodes[0].params
    assert params is not None
    assert (getattr(params, "strategy", None), [each.name for each in getattr(params, "characters", ())]) == (
        1,
        ["Anna", "Bert"],
    )


@pytest.mark.parametrize(
    ("line", "place", "told"),
    [
        ("characters: [Anna]", "6:5", "must be a list of {name, system_prompt, model_name}."),
        ("characters: [{nam: Anna}]", "6:19", "Did you mean `name`?"),
        ("characters: [{name: 'a:b'}]", "6:5", "has a colon"),
        ("characters: []", "6:5", "there must be 1 to 8"),
        ("max_lines: 65", "6:5", "it goes from 1 to 64"),
        ("strategy: random", "6:5", "must be one of"),
    ],
)
def test_what_is_wrong_with_a_director_is_told_with_its_place(line: str, place: str, told: str) -> None:
    text = f"start: talk\ndefault_model: mock\nnodes:\n  talk:\n    type: Director\n    {line}\n"
    if not line.startswith("characters"):
        text += "    characters: [{name: Anna}]\n"
    found = [str(each) for each in yaml_graph.read_data(text.encode(), "g.yaml", None).wrong]
    assert found[0].startswith(f"g.yaml:{place}: ")
    assert told in found[0]
