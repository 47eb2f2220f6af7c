"""`trunkline agentproc` and its neighbours as lists of commands."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from trunkline.cli.app import app


@pytest.mark.parametrize("group", ["agentproc", "agentproc hub", "bridge"])
def test_what_the_list_says_of_a_command_fits_the_terminal(group: str) -> None:
    result = CliRunner().invoke(app, [*group.split(), "--help"], terminal_width=80)
    listed = result.output.partition("Commands:\n")[2].splitlines()
    assert len(listed) > 2
    assert not [line for line in listed if line.endswith("...")]


def test_running_a_bridge_is_shown_by_examples() -> None:
    assert "trunkline bridge run terminal --agent echo" in CliRunner().invoke(app, ["bridge", "run", "--help"]).output
