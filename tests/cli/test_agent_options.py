"""The options of the commands that are an agent for another program."""

from __future__ import annotations

import logging
import os

import pytest

from trunkline.base.redact import Redactor
from trunkline.cli import agent, agent_options
from trunkline.cli.arguments import UsageError


def test_zero_rounds_of_tools_is_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert agent._parse(["--json-stream", "--max-turns", "0"]).max_turns == 0
    monkeypatch.setenv("TRUNKLINE_MAX_TURNS", "0")
    assert agent._parse(["--json-stream"]).max_turns == 0


@pytest.mark.parametrize("wrong", ["-1", "1.5", "many"])
def test_a_number_of_rounds_that_is_none_is_refused(wrong: str) -> None:
    with pytest.raises(UsageError, match="max-turns"):
        agent._parse(["--json-stream", "--max-turns", wrong])


@pytest.mark.parametrize(("screen", "begins"), [(True, "Warning: `telegram` cannot"), (False, "20")])
def test_what_is_logged_is_a_sentence_on_a_screen_and_a_record_elsewhere(
    screen: bool, begins: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "isatty", lambda fd: screen)
    root = logging.getLogger()
    before = list(root.handlers)
    agent_options.log_to_stderr(Redactor(()))
    (handler,) = [each for each in root.handlers if each not in before]
    root.removeHandler(handler)
    record = logging.LogRecord("trunkline.x", logging.WARNING, "", 0, "`%s` cannot be served yet", ("telegram",), None)
    told = handler.format(record)
    assert told.startswith(begins)
    assert ("trunkline.x" in told) == (not screen)
