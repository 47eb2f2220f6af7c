"""`trunkline agentproc hub`: with some programs on the `PATH`, all of them fakes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.fake_cli import install_fake
from tests.support.patience import PATIENCE_SECONDS
from trunkline.cli import agentproc_hub, table
from trunkline.wires.agentproc import hub
from trunkline.wires.agentproc.profile.file import find


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
    assert failed.exit_code == 2
    assert "Did you mean `codex`?" in failed.stderr
    for command in (("install",), ("run",), ("doctor",)):
        assert invoke(*command, "codx").exit_code == 2


@pytest.mark.process
def test_the_doctor_says_what_is_here_and_what_is_missing(monkeypatch: pytest.MonkeyPatch, programs: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    output = run("doctor")
    assert "codex       codex 9.8.7" in output
    assert "OPENAI_API_KEY" in output
    assert "sk-very-secret" not in output
    assert f"gemini-cli: {programs / 'gemini'}\n  Log in (`gemini`) unless you have, or set GEMINI_API_KEY" in output
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
    assert invoke("doctor", "gose").exit_code == 2


@pytest.mark.process
def test_a_program_that_does_not_tell_its_version_in_time_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, programs: Path
) -> None:
    slow = programs / "opencode"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setattr(agentproc_hub, "VERSION_SECONDS", 0.2)
    assert "It does not start" in run("doctor", "opencode")


def test_a_profile_is_installed_as_a_file_that_runs_and_none_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("install", "codex") == "./codex.yaml\n"
    assert find("./codex.yaml").replace(directory=None) == hub.load("codex")
    (tmp_path / "codex.yaml").write_text("mine")
    again = invoke("install", "codex")
    assert (again.exit_code, (tmp_path / "codex.yaml").read_text()) == (1, "mine")
    assert "`./codex.yaml` already exists" in again.stderr
    run("install", "codex", "--force")
    assert (tmp_path / "codex.yaml").read_text() == hub.text("codex")
    (tmp_path / "profiles").mkdir()
    assert run("install", "agy", "--to", "profiles") == "profiles/agy.yaml\n"
    unknown = invoke("install", "../codex")
    assert unknown.exit_code == 2
    assert "no bundled profile" in unknown.stderr


@pytest.mark.parametrize("kind", ["fifo", "link", "folder"])
def test_only_a_file_is_replaced_by_force(kind: str, tmp_path: Path) -> None:
    path, other = tmp_path / "codex.yaml", tmp_path / "other"
    other.write_text("other")
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "link":
            path.symlink_to(other)
        case _:
            path.mkdir()
    refused = invoke("install", "codex", "--force", "--to", str(tmp_path))
    assert refused.exit_code == 1
    assert "is not a regular file" in refused.stderr
    assert other.read_text() == "other"
    assert not list(tmp_path.glob("*.new"))


def test_run_takes_the_options_of_run_for_a_profile_of_ours_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[list[str]] = []

    def main(arguments: list[str]) -> None:
        given.append(arguments)

    monkeypatch.setattr("trunkline.cli.agentproc_run.main", main)
    run("run", "codex", "--message", "--help me", "-v", "--env", "A=b", "--json")
    assert given == [["--profile", "codex", "--message", "--help me", "-v", "--env", "A=b", "--json"]]
    (tmp_path / "mine").write_text("command: touch pwned\n")
    monkeypatch.chdir(tmp_path)
    assert invoke("run", "mine", "--message", "hi").exit_code == 2
    assert invoke("run", "codex", "--profile=mine", "--message", "hi").exit_code == 2
    assert len(given) == 1


@pytest.mark.process
def test_the_echo_is_there_to_try_a_bridge_with(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "trunkline", "agentproc", "hub", "run", "echo-agent", "--message", "hello there"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False, cwd=tmp_path)
    assert (done.stdout, done.returncode) == ("hello there\n", 0), done.stderr


def test_what_a_doctor_advises_can_be_done_by_anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    for name, program in hub.PROGRAMS.items():
        if program.command != hub.OWN_PROGRAM:
            # A command that does not need a directory that the reader does not have, or a page.
            assert re.match(r"(npm install -g|uv tool install) \S+$|see https://\S+$", program.install), name
    told = {each["name"]: each["advice"] for each in json.loads(run("doctor", "--json"))["profiles"]}
    assert told["agy"] == "To install it, see https://antigravity.google."
    assert told["codex"] == "Install it with `npm install -g @openai/codex`."
