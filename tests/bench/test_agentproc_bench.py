"""The benchmark of the AgentProc bridge runs, and every row has the control and the goal that it was given."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bench._measure import clean_environment

from environments import AGENTPROC_01, INSTALL_SECONDS
from tests.support.mcp_environment import environment

ROOT = Path(__file__).resolve().parent.parent.parent
#: A run takes some seconds; on a machine that is busy with other tests, more.
PATIENCE_SECONDS = 100

PROMISED = [
    ("a turn", "Popen.communicate()", "wall <= 1.1"),
    ("a turn by the command line", "agentproc 0.4.2", "wall <= 0.6"),
    ("64 turns at once", "a thread pool of Popen", "wall >= 0.9"),
    ("1,000 partials of one turn", "agentproc 0.4.2, run()", "wall <= 1"),
    ("memory after 20 turns, resident", "after the first of them", "wall <= 1.1"),
]


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.timeout(PATIENCE_SECONDS + INSTALL_SECONDS)
def test_every_row_is_measured_against_its_control(tmp_path: Path) -> None:
    environment(AGENTPROC_01)
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "agentproc.py"), "--tiny", "--json"],
        cwd=tmp_path, env=clean_environment(TMPDIR=str(tmp_path)) | {"HOME": os.environ["HOME"]},
        capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []
    rows: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    assert [(row["name"], row["control_name"], row["goal"]) for row in rows] == PROMISED
    assert all(row["subject"]["median"] > 0 and row["control"]["median"] > 0 for row in rows)
