"""A benchmark run as small as it can be, for those who look at its rows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench._measure import clean_environment

ROOT = Path(__file__).resolve().parents[2]
#: A run takes some seconds; on a machine with ten times the work that it has cores for, minutes.
PATIENCE_SECONDS = 300

#: A row's name, its control, and the goal that it was given when the work began.
Promised = tuple[str, str, str | None]


def measured(
    name: str, scratch: Path, promised: Sequence[Promised], *, timeout: float = PATIENCE_SECONDS, **variables: str
) -> list[dict[str, Any]]:
    """The rows of a benchmark: those that were promised, each with a figure of its own and one of its control.

    Fails if it leaves anything behind in `scratch`. `variables` are set for it.
    """
    environment = clean_environment(TMPDIR=str(scratch)) | {"HOME": os.environ["HOME"]} | variables
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench" / f"{name}.py"), "--tiny", "--json"],
        cwd=scratch, env=environment, capture_output=True, text=True, check=False, timeout=timeout,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert list(scratch.iterdir()) == []
    rows: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    assert [(row["name"], row["control_name"], row["goal"]) for row in rows] == [*promised]
    assert all(row["subject"]["median"] > 0 and row["control"]["median"] > 0 for row in rows)
    return rows
