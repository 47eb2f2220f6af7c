"""The list of commands, and what is said of one that does not exist."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from trunkline.base.programs import own_command_here
from trunkline.cli.app import COMMANDS, SUMMARIES, app, run
from trunkline.cli.explained import explained
from trunkline.core.faults import AgentFailed, ConfigError, Fault


def test_every_summary_fits_its_line_and_completion_is_mentioned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    printed = CliRunner().invoke(app, ["--help"], terminal_width=80).output
    listed = printed.partition("Commands:")[2]
    names = (*COMMANDS, "agent")
    width = max(map(len, names))
    for name in names:
        assert f"  {name:{width}}  {SUMMARIES[name]}\n" in listed
    assert "_TRUNKLINE_COMPLETE=bash_source" in printed


def test_a_mistyped_command_is_an_error_that_suggests_the_right_one() -> None:
    result = CliRunner().invoke(app, ["caht"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "No such command 'caht'. Did you mean 'chat'?" in result.stderr
    assert "Did you mean" not in CliRunner().invoke(app, ["xyzzy"]).stderr


def test_help_is_a_word_that_does_what_the_option_does() -> None:
    printed = CliRunner().invoke(app, ["--help"], prog_name="trunkline").stdout
    assert CliRunner().invoke(app, ["help"], prog_name="trunkline").stdout == printed
    assert "Usage: trunkline graph run" in CliRunner().invoke(app, ["help", "graph", "run"]).stdout
    assert "No such command 'caht'" in CliRunner().invoke(app, ["help", "caht"]).stderr


@pytest.mark.parametrize("arguments", [["chat", "echo", "-p", "hi"], ["sessions", "list"], ["config", "path"]])
def test_a_home_that_cannot_be_used_is_told_in_a_line(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for variable in ("TRUNKLINE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", "relative")
    monkeypatch.setattr(sys, "argv", ["trunkline", *arguments])
    assert run() == 1
    told = " ".join(capsys.readouterr().err.split())
    assert told == "Error: There is no home directory. Set `HOME` or `TRUNKLINE_HOME` to an absolute path."


@pytest.mark.parametrize(
    ("variable", "arguments"),
    [
        ("TRUNKLINE_HOME", ["chat", "echo", "-p", "hi"]),
        ("TRUNKLINE_HOME", ["network", "serve", "--listen", "127.0.0.1:0"]),
        ("TRUNKLINE_HOME", ["bridge", "run", "terminal", "--agent", "echo"]),
        ("TRUNKLINE_HOME", ["up"]),
        ("TRUNKLINE_HOME", ["up", "--config", "trunkline.toml"]),
        ("TRUNKLINE_CACHE", ["models", "pull", "piper-joe"]),
    ],
)
def test_a_place_that_cannot_be_written_is_told_with_the_variable_that_names_another(
    variable: str,
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "trunkline.toml").write_text("[agents.e]\nagent = 'echo'\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(variable, "/proc/nope")
    monkeypatch.setattr(sys, "argv", ["trunkline", *arguments])
    with suppress(SystemExit):
        assert run() == 1
    told = " ".join(capsys.readouterr().err.split())
    assert told.endswith(f": No such file or directory. Set `{variable}` to a directory in which you can write.")
    assert "Errno" not in told


def test_escapes_in_what_was_typed_are_shown_and_not_obeyed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["trunkline", "agentproc", "hub", "show", "\x1b]0;owned\x07x"])
    assert run() == 2
    told = capsys.readouterr().err
    assert "owned" in told
    assert told.replace("\n", "").isprintable()


def test_a_command_in_an_error_is_as_it_is_typed_here_unless_it_is_for_a_servers_machine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "argv", ["trunkline", "serve"])
    for error, told in (
        (ConfigError("`trunkline models list` shows them."), f"`{own_command_here()} models list` shows them."),
        (AgentFailed("The server says: `trunkline models pull m`."), "The server says: `trunkline models pull m`."),
    ):

        def failing(error: Fault = error, **options: Any) -> None:
            raise error

        command = click.Command("serve", callback=explained(failing))
        monkeypatch.setattr(app, "get_command", lambda context, name, found=command: found)
        assert run() == 1
        assert " ".join(capsys.readouterr().err.split()) == f"Error: {told}"
