"""Programs of npm's that tests drive run here, without their installation scripts."""

from __future__ import annotations

import subprocess

import pytest

from environments import INSTALL_SECONDS
from tests.support.npm import NODE_VERSION, OPENCODE, QWEN, node, node_environment, opencode, script
from tests.support.patience import PATIENCE_SECONDS

# The first run installs them.
pytestmark = [pytest.mark.long, pytest.mark.process, pytest.mark.timeout(2 * INSTALL_SECONDS)]


def version_said_by(command: list[str]) -> str:
    done = subprocess.run(
        [*command, "--version"],
        capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True, env=node_environment(),
    )  # fmt: skip
    return done.stdout.strip()


def test_node_is_the_one_that_todays_programs_need() -> None:
    assert version_said_by([str(node())]) == f"v{NODE_VERSION}"


def test_a_program_that_is_written_for_node_runs() -> None:
    assert version_said_by(script(QWEN, "qwen")) == QWEN.rpartition("@")[2]


def test_a_program_that_is_in_a_package_for_the_machine_runs() -> None:
    assert version_said_by([str(opencode())]) == OPENCODE.rpartition("@")[2]
