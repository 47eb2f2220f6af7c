"""`trunkline graph test`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.invoked import Invoked, invoke
from trunkline.cli.graph_test import command

GRAPH = """start: guard
default_model: mock
nodes:
  guard: {type: HumanMessageGuardrail, inline_strings: [bad], triggered: refuse, not_triggered: answer}
  refuse: {type: CannedResponse, inline_strings: ["No, never."]}
  answer: {type: Generate}
tests:
  - name: refuses
    turns:
      - say: bad
        expect: {text: never}
      - say: good
        expect:
          path: [guard, answer]
  - name: for models
    models: real
    turns: [{say: x}]
"""
FAILING = """  - name: goes wrong
    turns:
      - say: bad
        expect:
          path: [answer]
          text: said
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "g.yaml").write_text(GRAPH)
    return str(tmp_path / "g.yaml")


def run(*arguments: str) -> Invoked:
    return invoke(command, *arguments)


def test_a_line_for_each_test_and_one_for_all_and_0_if_they_pass(file: str) -> None:
    result = run(file)
    first, second, last = result.stdout.splitlines()
    assert first.startswith(f"passed   {file}:8:5: refuses (")
    assert second == f"skipped  {file}:15:5: for models: it needs real models"
    assert (last, result.exit_code) == ("1 passed, 1 skipped", 0)


def test_a_failure_says_what_was_expected_where_and_what_happened_and_exits_with_1(file: str) -> None:
    Path(file).write_text(GRAPH + FAILING)
    result = run(file)
    lines = result.stdout.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("failed"))
    assert lines[at].startswith(f"failed   {file}:18:5: goes wrong (")
    assert lines[at + 1 : -1] == [
        "  turn 1: bad",
        f"    {file}:22:11: expected path: [answer]",
        "      but the path was [guard, refuse]",
        f"    {file}:23:11: expected text: said",
        '      but the answer was "No, never."',
        "    path: guard triggered > refuse default",
        "    text: No, never.",
    ]
    assert (lines[-1], result.exit_code) == ("1 passed, 1 failed, 1 skipped", 1)


def test_only_some_are_run_and_a_name_that_no_test_has_is_wrong_usage(file: str) -> None:
    Path(file).write_text(GRAPH + FAILING)
    result = run(file, "--only", "refuses")
    assert (result.stdout.splitlines()[-1], result.exit_code) == ("1 passed", 0)
    result = run(file, "--only", "refuse")
    assert (result.exit_code, "Did you mean `refuses`?" in result.stderr) == (2, True)


def test_a_file_that_is_wrong_or_has_no_tests_exits_with_2_and_the_others_are_run(file: str, tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_text(GRAPH.replace("path: [guard", "path: [gard"))
    (tmp_path / "none.yaml").write_text(GRAPH[: GRAPH.index("tests:")])
    result = run(str(tmp_path / "wrong.yaml"), str(tmp_path / "none.yaml"), str(tmp_path / "not-there.yaml"), file)
    assert result.exit_code == 2
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"problem  {tmp_path}/wrong.yaml:14:18: `tests[0].turns[1].expect.path[0]` names `gard`")
    assert lines[1] == f"problem  {tmp_path}/none.yaml has no `tests`."
    assert "cannot be read" in lines[2]
    assert lines[-1] == "1 passed, 1 skipped"


def test_a_folder_is_no_graph_and_exits_with_2(tmp_path: Path) -> None:
    result = run(str(tmp_path))
    assert (result.exit_code, "cannot be read: Is a directory. Name a file" in result.stdout) == (2, True)


def test_a_model_that_is_not_there_exits_with_2(file: str) -> None:
    result = run(file, "--model", "no-such-model")
    assert (result.exit_code, "no-such-model" in result.stdout) == (2, True)


def test_json_has_all_of_it(file: str) -> None:
    Path(file).write_text(GRAPH + FAILING)
    result = run(file, "--json", "--seed", "7")
    found = json.loads(result.stdout)
    assert (found["ok"], result.exit_code) == (False, 1)
    (one,) = found["files"]
    assert (one["file"], one["ok"], one["problems"]) == (file, False, [])
    assert [(each["name"], each["line"], each["outcome"]) for each in one["tests"]] == [
        ("refuses", 8, "passed"),
        ("for models", 15, "skipped"),
        ("goes wrong", 18, "failed"),
    ]
    (turn,) = one["tests"][2]["turns"]
    assert (turn["text"], turn["status"], turn["intent"], turn["tools"]) == ("No, never.", "success", None, [])
    assert [(step["node"], step["exit"]) for step in turn["path"]] == [("guard", "triggered"), ("refuse", "default")]
    assert turn["failures"][0] == {
        "key": "path",
        "line": 22,
        "column": 11,
        "expected": "path: [answer]",
        "happened": "the path was [guard, refuse]",
    }


def test_nothing_that_a_file_says_moves_the_terminal(file: str) -> None:
    Path(file).write_text(GRAPH.replace("name: refuses", 'name: "refuses\\e[2J\\n"').replace("text: never", "text: x"))
    result = run(file)
    assert "\x1b[2J" not in result.stdout
    assert result.exit_code == 1


def test_the_graphs_that_come_along_have_tests_that_pass() -> None:
    result = run("npc", "smith", "--model", "mock")
    assert (result.exit_code, "failed" in result.stdout) == (0, False)
