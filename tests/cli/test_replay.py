"""`trunkline replay`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.invoked import invoke
from trunkline.cli.record import as_file
from trunkline.cli.replay import command

WRITE = {"name": "Write", "category": "edit", "id": "c", "args": {"file_path": "{{x}}"}, "output": "done {{output}}"}
TURNS = [
    {"message": "Write it", "steps": [{"text": ["One ", "moment."]}, {"tools": [WRITE, {**WRITE, "answer": "deny"}]}]},
    {"message": "And?", "steps": [{"tool": WRITE}, {"fail": {"kind": "provider", "message": "No {{input}}."}}]},
]


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "talk.yaml"
    path.write_bytes(as_file({"verbatim": True, "turns": TURNS}))
    return str(path)


def test_what_was_said_is_said_again_and_answered_as_it_was(file: str) -> None:
    done = invoke(command, file, "--json")
    assert done.exit_code == 0
    events = [json.loads(line) for line in done.stdout.splitlines()]
    told = [(event["event"], event["data"]) for event in events]
    assert [data["message"]["text"] for kind, data in told if kind == "TurnStarted"] == ["Write it", "And?"]
    assert [data["approved"] for kind, data in told if kind == "ToolAnswered"] == [True, False, True]
    assert [data["output"] for kind, data in told if kind == "ToolFinished"] == ["done {{output}}"] * 2
    assert [data["args"] for kind, data in told if kind == "ToolRequested"] == [{"file_path": "{{x}}"}] * 3
    assert [data["message"] for kind, data in told if kind == "Failed"] == ["No {{input}}."]
    assert [data["outcome"] for kind, data in told if kind == "TurnEnded"] == ["success", "error"]


def test_people_get_a_transcript(file: str) -> None:
    done = invoke(command, file)
    for part in ("you       Write it", "agent     One moment.", "denied", "provider: No {{input}}."):
        assert part in done.stdout


def test_a_script_that_is_no_recording_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("turns: [{steps: [{text: hi}]}]")
    done = invoke(command, str(path))
    assert done.exit_code == 1
    assert f"trunkline chat scripted:{path}" in done.stderr
