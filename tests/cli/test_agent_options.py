"""The options of the commands that are an agent for another program."""

from __future__ import annotations

import pytest

from trunkline.cli import agent
from trunkline.cli.arguments import UsageError


def test_zero_rounds_of_tools_is_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert agent._parse(["--json-stream", "--max-turns", "0"]).max_turns == 0
    monkeypatch.setenv("TRUNKLINE_MAX_TURNS", "0")
    assert agent._parse(["--json-stream"]).max_turns == 0


@pytest.mark.parametrize("wrong", ["-1", "1.5", "many"])
def test_a_number_of_rounds_that_is_none_is_refused(wrong: str) -> None:
    with pytest.raises(UsageError, match="max-turns"):
        agent._parse(["--json-stream", "--max-turns", wrong])
