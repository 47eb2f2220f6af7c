"""`trunkline agentproc hub`: with some programs on the `PATH`, all of them fakes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.fake_cli import install_fake
from trunkline.cli import agentproc_hub, table
from trunkline.wires.agentproc import hub


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    install_fake(tmp_path, "codex")
    install_fake(tmp_path, "gemini-cli")
    broken = tmp_path / "qwen"
    broken.write_text("#!/bin/sh\necho 1.2.3\nexit 1\n")
    broken.chmod(0o755)
    # For the shell that starts the fakes; nobody has an agent there.
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin")
    monkeypatch.setenv("COLUMNS", "80")
    for program in hub.PROGRAMS.values():
        for key in program.keys:
            monkeypatch.delenv(key, raising=False)
    return tmp_path


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(agentproc_hub.command, list(arguments))


def run(*arguments: str) -> str:
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_list_says_what_there_is_and_what_is_here() -> None:
    lines = run("list").splitlines()
    assert lines[0] == "NAME         HERE  DESCRIPTION"
    assert "codex        yes   Codex, OpenAI's coding agent." in lines
    assert "goose        no    goose, an open-source agent with extensions." in lines
    assert len(lines) == 1 + len(hub.names())


def test_the_list_fits_a_terminal_and_is_whole_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    descriptions = [record["description"] for record in json.loads(run("list", "--json"))["profiles"]]
    piped = run("list")
    assert all(description in piped for description in descriptions)
    monkeypatch.setattr(table, "room", lambda: 40)
    assert max(map(len, run("list").splitlines())) <= 40


def test_the_list_for_programs_has_the_paths(programs: Path) -> None:
    records = {record["name"]: record for record in json.loads(run("list", "--json"))["profiles"]}
    assert records["codex"]["path"] == str(programs / "codex")
    assert records["cursor"] == {
        "name": "cursor",
        "description": "Cursor's agent for the command line.",
        "program": "cursor-agent",
        "path": None,
    }


def test_a_profile_is_shown_as_it_is() -> None:
    assert run("show", "codex") == hub.text("codex")
    failed = invoke("show", "codx")
    assert failed.exit_code == 1
    assert "Did you mean `codex`?" in failed.stderr


@pytest.mark.process
def test_the_doctor_says_what_is_here_and_what_is_missing(monkeypatch: pytest.MonkeyPatch, programs: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    output = run("doctor")
    assert "codex       codex 9.8.7" in output
    assert "OPENAI_API_KEY" in output
    assert "sk-very-secret" not in output
    assert f"gemini-cli: {programs / 'gemini'}\n  Log in (`gemini`) or set GEMINI_API_KEY or GOOGLE_API_KEY." in output
    assert "It does not start: try `qwen --version`." in output
    asking = [line for line in output.splitlines() if "in the chat" in line]
    assert [line.split()[0] for line in asking] == ["codex"]
    assert "claude-code  npm install -g @anthropic-ai/claude-code" in output
    assert max(map(len, output.replace(str(programs), "/x").splitlines())) <= 80


@pytest.mark.process
def test_the_doctor_for_programs_names_variables_and_no_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_API_KEY", "sk-very-secret")
    output = run("doctor", "codex", "--json")
    assert "sk-very-secret" not in output
    (record,) = json.loads(output)["profiles"]
    assert record["installed"] is True
    assert (record["version"], record["keys"], record["advice"]) == ("codex 9.8.7", ["CODEX_API_KEY"], "")
    assert record["asks"] is True


@pytest.mark.process
def test_the_doctor_fails_when_one_that_was_named_is_missing() -> None:
    missing = invoke("doctor", "goose")
    assert missing.exit_code == agentproc_hub.EXIT_MISSING
    assert "see https://github.com/block/goose" in missing.stdout
    assert invoke("doctor", "codex").exit_code == 0
    assert invoke("doctor", "gose").exit_code == 1


@pytest.mark.process
def test_a_program_that_does_not_tell_its_version_in_time_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, programs: Path
) -> None:
    slow = programs / "opencode"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setattr(agentproc_hub, "VERSION_SECONDS", 0.2)
    assert "It does not start" in run("doctor", "opencode")
