"""The benchmark of the coding agent runs, and every row has the control and the goal that it was given."""

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

READER = "http.client + json + print"
PROMISED = [
    ("spawn to first delta, message sent at spawn", "python -c pass", "wall <= 20"),
    ("spawn to first delta, message sent at `ready`", "python -c pass", "wall <= 20"),
    ("a word's way, paced", READER, None),
    ("words at full speed", READER, None),
    ("turn 12", "turn 5", "CPU <= 1.2"),
    ("memory at turn 12, resident", "turn 5", None),
]


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.timeout(PATIENCE_SECONDS)
def test_every_row_is_measured_against_its_control(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "coder.py"), "--tiny", "--json"],
        cwd=tmp_path, env=clean_environment(TMPDIR=str(tmp_path)) | {"HOME": os.environ["HOME"]},
        capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []
    rows: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    wanted = [
        (f"{form}: {name}", control, goal) for form in ("openai", "anthropic") for name, control, goal in PROMISED
    ]
    assert [(row["name"], row["control_name"], row["goal"]) for row in rows] == wanted
    assert all(row["subject"]["median"] > 0 and row["control"]["median"] > 0 for row in rows)
