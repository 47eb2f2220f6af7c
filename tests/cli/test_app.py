"""The list of commands, and what is said of one that does not exist."""

from __future__ import annotations

import sys

import pytest
from click.testing import CliRunner

from trunkline.cli.app import COMMANDS, SUMMARIES, app, run


def test_every_summary_fits_its_line_and_completion_is_mentioned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    printed = CliRunner().invoke(app, ["--help"], terminal_width=80).output
    listed = printed.partition("Commands:")[2]
    for name in (*COMMANDS, "agent"):
        assert f"  {name:9}  {SUMMARIES[name]}\n" in listed
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


def test_escapes_in_what_was_typed_are_shown_and_not_obeyed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["trunkline", "agentproc", "hub", "show", "\x1b]0;owned\x07x"])
    assert run() == 2
    told = capsys.readouterr().err
    assert "owned" in told
    assert told.replace("\n", "").isprintable()
