"""`trunkline doctor`, as people run it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from trunkline.cli import doctor

FILE = "[exchange]\nlisten = '127.0.0.1:0'\nhome = 'home'\n[agents.e]\nagent = 'echo'\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_all_is_well_with_exit_code_0(here: Path) -> None:
    (here / "trunkline.toml").write_text(FILE)
    done = CliRunner().invoke(doctor.command, [])
    assert (done.exit_code, "WRONG" in done.stdout) == (0, False)
    assert "agent e: echo" in done.stdout


def test_what_is_wrong_is_told_with_what_mends_it_and_exit_code_1(here: Path) -> None:
    (here / "x.toml").write_text(FILE + "workspace = 'none'\n")
    done = CliRunner().invoke(doctor.command, ["--config", "x.toml"])
    assert done.exit_code == 1
    assert f"mkdir -p {here / 'none'}" in done.stdout


def test_it_can_be_had_as_json(here: Path) -> None:
    (here / "trunkline.toml").write_text(FILE + "[people.ana]\ntoken = 'x'\n")
    done = CliRunner().invoke(doctor.command, ["--json"])
    told = json.loads(done.stdout)
    assert (done.exit_code, told["ok"]) == (1, False)
    assert "trunkline.toml:7:1: `people.ana.token` is a secret" in told["checks"][0]["told"]


def test_without_a_file_here_the_one_of_trunkline_up_is_looked_at(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUNKLINE_HOME", str(here / "state"))
    (here / "state" / "up").mkdir(parents=True)
    (here / "state" / "up" / "trunkline.toml").write_text(FILE)
    assert "agent e: echo" in CliRunner().invoke(doctor.command, []).stdout
    (here / "trunkline.toml").write_text(FILE.replace("agents.e", "agents.mine"))
    assert "agent mine: echo" in CliRunner().invoke(doctor.command, []).stdout


def test_without_a_file_it_tells_how_to_write_one() -> None:
    done = CliRunner().invoke(doctor.command, [])
    assert (done.exit_code, "trunkline init" in done.stdout) == (1, True)


def test_the_agents_of_other_people_are_listed_with_what_each_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "opencode").write_text("#!/bin/sh\n")
    (tmp_path / "opencode").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hidden-0123")
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    done = CliRunner().invoke(doctor.command, ["--agents"])
    assert done.exit_code == 0
    lines = done.output.splitlines()
    assert lines[0].split() == ["NAME", "HERE", "DESCRIPTION"]
    assert any(line.split()[:2] == ["acp:opencode", "yes"] for line in lines)
    assert any(line.split()[:2] == ["acp:gemini-cli", "no"] for line in lines)
    assert "Install it with `npm install -g @google/gemini-cli`." in done.output
    found = json.loads(CliRunner().invoke(doctor.command, ["--agents", "--json"]).output)
    opencode = next(each for each in found["agents"] if each["name"] == "opencode")
    assert (opencode["command"], opencode["path"], opencode["keys"], opencode["advice"]) == (
        "opencode acp", str(tmp_path / "opencode"), ["OPENAI_API_KEY"], "",
    )  # fmt: skip
    assert "sk-hidden-0123" not in done.output
