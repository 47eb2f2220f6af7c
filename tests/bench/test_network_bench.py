"""The benchmark of the network runs, and every row has the control and the goal that it was given."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bench._measure import clean_environment

ROOT = Path(__file__).resolve().parent.parent.parent
#: A run takes some seconds; on a machine that is busy with other tests, more.
PATIENCE_SECONDS = 100

PROMISED = [
    ("signed writes", "one commit for each", "wall >= 2"),
    ("signed writes", "a plain ASGI handler", "wall >= 0.5"),
    ("context of 200 threads", "of 100 threads", "wall <= 2"),
]


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.timeout(PATIENCE_SECONDS)
def test_every_row_is_measured_against_its_control(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "network.py"), "--tiny", "--json"],
        cwd=tmp_path, env=clean_environment(TMPDIR=str(tmp_path)) | {"HOME": os.environ["HOME"]},
        capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []
    rows: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    assert [(row["name"], row["control_name"], row["goal"]) for row in rows] == PROMISED
    assert all(row["subject"]["median"] > 0 and row["control"]["median"] > 0 for row in rows)
