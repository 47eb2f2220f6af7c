"""The bundled profiles as files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.fake_cli import FAKES, PROGRAMS
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base.own_python import module_command
from trunkline.core.faults import ConfigError
from trunkline.wires.agentproc import hub, streams
from trunkline.wires.agentproc.profile.file import find, load

#: What would let a program act without asking. A bundled profile shows it in a comment, and does not use it.
UNATTENDED = ("--yolo", "--auto", "--force", "--yes-always", "--dangerously", "yolo", "--trust", "--skip-trust")


def test_every_agent_that_people_have_is_there_and_every_file_is_one_of_them() -> None:
    assert hub.names() == tuple(sorted([*FAKES, "echo-agent", "trunkline"]))
    folder = os.path.join(os.path.dirname(hub.__file__), "profiles")
    assert sorted(os.listdir(folder)) == [f"{name}.yaml" for name in hub.names()]
    assert {name: hub.PROGRAMS[name].command for name in FAKES} == PROGRAMS


@pytest.mark.parametrize("name", hub.names())
def test_a_profile_loads_without_a_warning_and_starts_its_program(name: str) -> None:
    profile = hub.load(name)
    assert profile.warnings == ()
    assert profile.name == name
    assert profile.description.endswith(".")
    assert hub.PROGRAMS[name].command in profile.command
    assert profile.stream in (*streams.names(), None)
    assert find(name) == profile


@pytest.mark.parametrize("name", hub.names())
def test_a_profile_lets_its_program_do_nothing_without_asking_and_shows_how_it_could(name: str) -> None:
    profile = hub.load(name)
    for argument in (*profile.command, *profile.args, *profile.resume_args):
        assert not argument.startswith(UNATTENDED)
    comments = [line for line in hub.text(name).splitlines() if line.startswith("#")]
    assert name in ("kimi", "echo-agent") or "To let it" in "\n".join(comments)
    assert all(len(line) <= 120 for line in hub.text(name).splitlines())


#: Programs that take the message nowhere else, as far as is known.
AS_ARGUMENT = ("agy", "aider", "codebuddy", "deepseek", "grok-build", "kimi", "recursive")


@pytest.mark.parametrize("name", [name for name in hub.names() if name not in AS_ARGUMENT])
def test_the_message_goes_where_no_other_user_sees_it(name: str) -> None:
    profile = hub.load(name)
    assert profile.stdin == "message" or profile.stream in streams.DIALOGUES
    assert "{{MESSAGE}}" not in "".join([*profile.command, *profile.args, *profile.resume_args])


@pytest.mark.parametrize("name", hub.names())
def test_a_program_gets_its_own_keys_and_not_the_whole_environment(name: str) -> None:
    allowed = hub.load(name).env_allowlist
    assert allowed is not None
    assert set(hub.PROGRAMS[name].keys) <= set(allowed)
    assert name == "echo-agent" or "HTTPS_PROXY" in allowed


@pytest.mark.parametrize("name", AS_ARGUMENT)
def test_no_message_is_an_option_where_it_is_an_argument(name: str) -> None:
    *before, last = (*(profile := hub.load(name)).command, *profile.args)
    assert last in ("{{MESSAGE}}", " {{MESSAGE}}") or last.startswith("--")
    assert last != "{{MESSAGE}}" or before[-1] == "--"


def test_a_profile_that_is_shown_can_be_used_as_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(hub.text("codex"))
    own = load(str(file))
    assert own.replace(directory=None) == hub.load("codex")


def test_an_unknown_name_is_refused_with_a_suggestion() -> None:
    with pytest.raises(ConfigError, match="Did you mean `codex`"):
        hub.load("codexx")
    with pytest.raises(ConfigError, match="hub list"):
        hub.text("../profile")


def test_our_own_agent_is_the_one_that_runs_here() -> None:
    assert hub.load("trunkline").command == module_command("trunkline", ("agentproc", "serve", "coder"))


@pytest.mark.process
def test_the_hub_and_the_streams_cost_little_to_import() -> None:
    heavy = ("yaml", "asyncio", "click", "rich", "httpx", "difflib", "shutil", "tempfile", "importlib.resources")
    code = (
        "import sys; from trunkline.wires.agentproc import hub, streams; hub.names(); streams.make('codex');"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True
    )
    assert done.stdout.strip() == "[]"


def test_no_message_is_a_command_to_aider() -> None:
    # It runs what follows a `!` at the very beginning.
    assert hub.load("aider").args[-1] == "--message= {{MESSAGE}}"
