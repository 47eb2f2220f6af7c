"""Whether a profile can work here, told without running it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from trunkline.wires.agentproc import hub
from trunkline.wires.agentproc.profile import Profile
from trunkline.wires.agentproc.profile.check import beside, examine, problem

NOWHERE = {"PATH": "/nowhere", "HOME": "/nowhere"}
HERE = {"PATH": "/usr/bin:/bin", "HOME": "/nowhere"}


def test_what_makes_every_turn_fail_is_told() -> None:
    assert problem(Profile(("sh",)), HERE) is None
    assert problem(Profile(("no-such-agent",)), HERE) == (
        "There is no program `no-such-agent` on `PATH`. Install it, or give its full path."
    )
    assert problem(Profile(("sh",), cwd="/no/such/place"), HERE) == (
        "The working directory `/no/such/place` does not exist. Create it, or correct `cwd`."
    )


def test_a_bundled_profile_says_how_to_get_its_program() -> None:
    assert problem(hub.load("codex"), NOWHERE) == (
        "There is no program `codex` on `PATH`. Install it with `npm install -g @openai/codex`."
    )


def test_a_module_is_not_looked_for_as_a_file() -> None:
    assert problem(Profile((sys.executable, "-m", "json.tool")), HERE) is None
    assert problem(hub.load("echo-agent"), HERE) is None
    assert problem(Profile((sys.executable, "-u", "no-such.py")), HERE, "/") is not None


@pytest.mark.parametrize("command", [("./agent",), ("bin/agent",), ("sh", "agent.sh")])
def test_what_is_relative_to_a_place_that_is_not_known_yet_is_not_judged(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert problem(Profile(command), HERE) is None
    assert problem(Profile(command), HERE, str(tmp_path)) is not None
    assert problem(Profile(command, cwd="/"), HERE) is not None


def test_a_program_beside_the_profile_is_told_with_what_to_write(tmp_path: Path) -> None:
    (tmp_path / "agent.py").touch()
    profile = Profile(("agent.py",), directory=str(tmp_path))
    assert beside(profile, "agent.py") == 'It is next to the profile: write "{{PROFILE_DIR}}/agent.py".'
    assert beside(profile, "./agent.py") == 'It is next to the profile: write "{{PROFILE_DIR}}/agent.py", or `cwd: .`.'
    assert beside(profile, "other.py") is None
    assert beside(profile.replace(directory=None), "agent.py") is None


def test_a_module_in_a_directory_that_may_be_anybodys_is_told_to_be_left_alone(tmp_path: Path) -> None:
    (tmp_path / "agent.py").touch()
    profile = Profile((sys.executable, "-m", "agent"), directory=str(tmp_path))
    (warning,) = examine(profile.placed(str(tmp_path)), HERE).warnings
    assert "The module `agent` is looked for among the installed ones" in warning
    assert "`cwd: .`" in warning
    assert examine(profile.replace(cwd="."), HERE).warnings == ()
    assert examine(Profile((sys.executable, "-m", "other")).placed(str(tmp_path)), HERE).warnings == ()
