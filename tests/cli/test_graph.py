"""`trunkline graph check` and `trunkline graph draw`."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from trunkline.cli.app import app

GOOD = """start: guard
default_model: any
nodes:
  guard: {type: HumanMessageGuardrail, inline_strings: [bad], triggered: refuse, not_triggered: answer}
  refuse: {type: CannedResponse, inline_strings: ["No."]}
  answer: {type: Generate, stream: true}
"""
BAD = "start: gard\nnodes:\n  guard:\n    type: Instruction\n    default: nowhere\n    colour: red\n"


@pytest.fixture
def good(tmp_path: Path) -> str:
    (tmp_path / "good.yaml").write_text(GOOD)
    return str(tmp_path / "good.yaml")


@pytest.fixture
def bad(tmp_path: Path) -> str:
    (tmp_path / "bad.yaml").write_text(BAD)
    return str(tmp_path / "bad.yaml")


def trunkline(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["graph", *arguments])


def test_a_good_graph_is_fine_and_warnings_do_not_change_that(good: str) -> None:
    result = trunkline("check", good)
    assert (result.exit_code, result.stdout) == (0, f"fine     {good}: 3 nodes\n")
    Path(good).write_text(GOOD + "  lost: {type: Instruction}\n")
    result = trunkline("check", good)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0] == f"warning  {good}:7:3: `nodes.lost` is a node that no turn can reach."


def test_all_that_is_wrong_is_a_line_each_and_the_exit_code_is_1(bad: str) -> None:
    result = trunkline("check", bad)
    assert result.exit_code == 1
    places = [line.partition(": ")[0] for line in result.stdout.splitlines()]
    assert places == [f"problem  {bad}:{place}" for place in ("1:1", "5:5", "6:5")]


def test_json_has_line_node_key_and_the_sentence(bad: str, good: str) -> None:
    found = json.loads(trunkline("check", bad, "--json").stdout)
    assert (found["file"], found["ok"], found["nodes"], found["warnings"]) == (bad, False, None, [])
    assert found["problems"][1] == {
        "line": 5,
        "column": 5,
        "node": "guard",
        "key": "default",
        "problem": "leads to `nowhere`, which is not a node.",
        "message": f"{bad}:5:5: `nodes.guard.default` leads to `nowhere`, which is not a node.",
    }
    assert found["problems"][0]["node"] is None
    found = json.loads(trunkline("check", good, "--json").stdout)
    assert (found["ok"], found["nodes"], found["problems"]) == (True, 3, [])


def test_what_a_file_says_cannot_command_the_terminal(tmp_path: Path) -> None:
    file = tmp_path / "g.json"
    file.write_text(json.dumps({"start": "a\x1b[31m", "nodes": {"a": {"type": "Instruction"}}}))
    result = trunkline("check", str(file))
    assert result.exit_code == 1
    assert "\\x1b[31m" in result.stdout
    assert "\x1b" not in result.stdout


def test_a_picture_goes_to_standard_output_or_into_a_file(good: str, tmp_path: Path) -> None:
    result = trunkline("draw", good)
    assert result.exit_code == 0
    ElementTree.fromstring(result.stdout)
    out = tmp_path / "out.svg"
    assert trunkline("draw", good, "-o", str(out)).exit_code == 0
    assert out.read_text() == result.stdout
    assert ">good.yaml<" in result.stdout
    result = trunkline("draw", good, "-o", str(tmp_path / "no" / "out.svg"))
    assert (result.exit_code, "cannot be written" in result.stderr) == (1, True)


def test_a_picture_takes_the_place_of_nothing_that_it_is_drawn_from(good: str, tmp_path: Path) -> None:
    turn = tmp_path / "turn.json"
    turn.write_text("{}")
    for target in (good, str(turn)):
        result = trunkline("draw", good, "--turn", str(turn), "-o", target)
        assert (result.exit_code, "would take the place of" in result.stderr) == (2, True)
    assert (Path(good).read_text(), turn.read_text()) == (GOOD, "{}")


def test_a_graph_that_is_wrong_is_not_drawn(bad: str) -> None:
    result = trunkline("draw", bad)
    assert (result.exit_code, result.stdout, result.stderr.count("Error: ")) == (1, "", 3)


def test_a_turn_is_drawn_from_what_run_recorded(good: str, tmp_path: Path) -> None:
    turn = str(tmp_path / "turn.json")
    assert trunkline("run", good, "-m", "something bad", "--record", turn).exit_code == 0
    result = trunkline("draw", good, "--turn", turn)
    assert result.exit_code == 0
    assert result.stdout.count('class="node ran"') == 2
    Path(turn).write_text("{}")
    result = trunkline("draw", good, "--turn", turn)
    assert (result.exit_code, "not the diagnostics of a turn" in result.stderr) == (1, True)
