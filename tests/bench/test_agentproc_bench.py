"""The benchmark of the AgentProc bridge runs, and every row has the control and the goal that it was given."""

from __future__ import annotations

from pathlib import Path

import pytest

from environments import AGENTPROC_01, INSTALL_SECONDS
from tests.support.benchmarks import PATIENCE_SECONDS, measured
from tests.support.mcp_environment import environment

PROMISED = [
    ("a turn", "Popen.communicate()", "wall <= 1.1"),
    ("a turn by the command line", "agentproc 0.4.2", "wall <= 0.6"),
    ("64 turns at once", "a thread pool of Popen", "wall >= 0.9"),
    ("1,000 partials of one turn", "agentproc 0.4.2, run()", "wall <= 1"),
    ("memory after 20 turns, resident", "after the first of them", "wall <= 1.1"),
]


@pytest.mark.process
@pytest.mark.long
@pytest.mark.timeout(PATIENCE_SECONDS + INSTALL_SECONDS)
def test_every_row_is_measured_against_its_control(tmp_path: Path) -> None:
    environment(AGENTPROC_01)
    measured("agentproc", tmp_path, PROMISED)
