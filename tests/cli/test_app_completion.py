"""Shell completion, through `click`'s own protocol, in fresh processes as a shell runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.base import paths
from trunkline.cli.app import COMMANDS
from trunkline.store.files import FileStore

pytestmark = pytest.mark.process

PROGRAM = str(Path(sys.executable).with_name("trunkline"))


def trunkline(**variables: str) -> str:
    done = subprocess.run(
        [PROGRAM],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    return done.stdout


def completed(words: str) -> list[str]:
    """What bash would offer for the last word."""
    count = len(words.split(" ")) - 1
    found = trunkline(_TRUNKLINE_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(count))
    return [line.partition(",")[2] for line in found.splitlines()]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_each_shell(shell: str) -> None:
    assert "_TRUNKLINE_COMPLETE" in trunkline(_TRUNKLINE_COMPLETE=f"{shell}_source")


def test_commands_are_completed() -> None:
    assert completed("trunkline ") == sorted([*COMMANDS, "agent"])
    assert completed("trunkline se") == ["sessions"]


def test_options_and_choices_are_completed() -> None:
    assert "--direction" in completed("trunkline schema jsonstream --d")
    assert completed("trunkline schema j") == ["jsonstream"]


def test_session_ids_are_completed() -> None:
    FileStore(paths.sessions_dir()).create("my-conv-123", "/").close()
    assert completed("trunkline sessions show my") == ["my-conv-123"]
    assert completed("trunkline sessions export l") == ["latest"]


def test_what_agentproc_runs_by_itself_is_completed_too() -> None:
    assert completed("trunkline agentproc run --m") == ["--message"]
    assert "codex" in completed("trunkline agentproc run --json --profile c")
    assert "codex" not in completed("trunkline agentproc run --message c")
    assert completed("trunkline agentproc serve e") == ["echo"]
    assert "agentproc:codex" in completed("trunkline agentproc serve ")
    assert completed("trunkline agentproc serve --p") == ["--provider", "--profile", "--protocol"]
    assert completed("trunkline agentproc serve echo --protocol 0") == ["0.1", "0.4"]
    # The file first: bash forgets what it heard before a file.
    assert completed("trunkline agentproc check cl") == ["cl", "claude-code"]


def test_providers_sessions_graphs_and_the_models_that_are_here_are_completed() -> None:
    FileStore(paths.sessions_dir()).create("my-conv-123", "/").close()
    assert completed("trunkline chat --provider anth") == ["anthropic"]
    assert completed("trunkline chat --resume my") == ["my-conv-123"]
    assert completed("trunkline graph run n") == ["n", "npc"]
    assert "npc" in completed("trunkline graph check n")
    assert completed("trunkline tryll chat --graph n") == completed("trunkline tryll talk --graph n") == ["n", "npc"]
    assert completed("trunkline models pull smollm2-135m") == ["smollm2-135m"]
    assert "smollm2-135m" not in completed("trunkline models rm smol")


def test_sessions_that_cannot_be_read_leave_the_line_alone() -> None:
    asked = {"_TRUNKLINE_COMPLETE": "bash_complete", "COMP_WORDS": "trunkline chat --resume ", "COMP_CWORD": "3"}
    for home in ({"TRUNKLINE_HOME": os.devnull}, {"TRUNKLINE_HOME": "", "XDG_STATE_HOME": "", "HOME": "relative"}):
        done = subprocess.run([PROGRAM], env=os.environ | asked | home, capture_output=True, timeout=PATIENCE_SECONDS)
        assert (done.stdout, done.stderr) == (b"", b"")
