"""The benchmark of the coding agent runs, and every row has the control and the goal that it was given."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.benchmarks import PATIENCE_SECONDS, measured

READER = "http.client + json + print"
PROMISED = [
    ("spawn to `ready`", "python -c pass", "wall <= 6"),
    ("spawn to `ready`, 20 skills and 3 hooks", "python -c pass", "wall <= 6"),
    ("spawn to first word, message sent at spawn", "python -c pass", "wall <= 12"),
    ("spawn to first word, message sent at `ready`", "python -c pass", "wall <= 12"),
    ("a word's way, paced", READER, None),
    ("words at full speed", READER, None),
    ("log of 3 short turns", "250 KiB", "wall <= 1"),
    ("turn 12", "turn 5", "CPU <= 1.1"),
    ("turn 12 with hooks, to-dos and an edit", "turn 5", "CPU <= 1.1"),
    ("memory at turn 12, resident", "turn 5", None),
]


@pytest.mark.process
@pytest.mark.long
@pytest.mark.timeout(PATIENCE_SECONDS)
def test_every_row_is_measured_against_its_control(tmp_path: Path) -> None:
    wanted = [
        (f"{form}: {name}", control, goal) for form in ("openai", "anthropic") for name, control, goal in PROMISED
    ]
    measured("coder", tmp_path, wanted)
