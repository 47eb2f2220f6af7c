"""`trunkline record`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.exchange_api import answering
from tests.support.invoked import invoke
from trunkline.agents import script
from trunkline.agents.script import Say, UseTools
from trunkline.cli.record import as_file, command
from trunkline.core.events import TextDelta


def recorded(text: str, **more: Any) -> dict[str, Any]:
    turn = {"message": "Hi", "steps": [{"text": [text]}], "outcome": "success", **more}
    return {"name": "x", "verbatim": True, "turns": [turn]}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRUNKLINE_HOME", str(tmp_path))
    return tmp_path / "exchange"


def test_the_file_can_be_played_whatever_it_is_called(home: Path, tmp_path: Path) -> None:
    answer = {"script": recorded("Hello {{input}}"), "left_out": {"sound": 3}}
    with answering(home, lambda asked: (200, answer)) as asked:
        done = invoke(command, "a b/c", "-o", "talk.yaml")
        told = invoke(command, "s", "-o", "talk.json", "--json")
    assert (done.exit_code, asked[0].path) == (0, "/api/sessions/a%20b%2Fc/script")
    assert "`talk.yaml` holds 1 turn." in done.stderr
    assert "Left out: 3 pieces of sound." in done.stderr
    assert json.loads(told.stdout) == {"file": "talk.json", "turns": 1, "left_out": {"sound": 3}}
    for name in ("talk.yaml", "talk.json"):
        (turn,) = script.load(str(tmp_path / name)).turns
        assert turn.steps == (Say(TextDelta("Hello {{input}}")),)


@pytest.mark.parametrize(
    "text",
    ["a\x85b", "a\u2028b", "\x7f\x9b", "😀", "\ufeff", "\t\r\n\x1b[0m", "{{input}}", "- x: 'y' # z", "\x00"],
)
def test_any_text_reads_the_same_as_json_and_as_yaml(text: str) -> None:
    call = {"name": "Write", "category": "edit", "args": {"content": text}, "output": text}
    data = as_file(recorded(text, steps=[{"text": [text]}, {"tool": call}]))
    for name in ("x.json", "x.yaml"):
        (turn,) = script.parse(data, name).turns
        said, used = turn.steps
        assert said == Say(TextDelta(text))
        assert isinstance(used, UseTools)
        assert (used.calls[0].args["content"], used.calls[0].output) == (text, text)


def test_half_a_character_is_replaced() -> None:
    (turn,) = script.parse(as_file(recorded("a\ud800b")), "x.yaml").turns
    assert turn.steps == (Say(TextDelta("a\ufffdb")),)


def test_a_file_that_is_there_stays_when_there_is_nothing_to_write(home: Path, tmp_path: Path) -> None:
    (tmp_path / "talk.yaml").write_text("mine")
    refusal = {"error": {"code": "session_not_found", "message": "There is no session `s` here."}}
    with answering(home, lambda asked: (404, refusal)):
        done = invoke(command, "s", "-o", "talk.yaml")
    assert done.exit_code == 1
    assert "There is no session `s` here." in done.stderr
    assert (tmp_path / "talk.yaml").read_text() == "mine"


def test_without_an_exchange_it_exits_1() -> None:
    done = invoke(command, "s", "-o", "talk.yaml")
    assert done.exit_code == 1
    assert "No exchange is running here" in done.stderr
