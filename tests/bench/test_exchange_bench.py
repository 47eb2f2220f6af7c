"""The benchmark of the exchange runs, and every row has the control and the goal that it was given."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.benchmarks import PATIENCE_SECONDS, measured

PROMISED = [
    ("2 sessions at once", "no exchange", "CPU >= 0.5"),
    ("a turn with 100 watchers", "with one", "CPU <= 3"),
    ("an idle session", "the limit", "wall <= 1"),
]


@pytest.mark.process
@pytest.mark.timeout(PATIENCE_SECONDS)
def test_every_row_is_measured_against_its_control(tmp_path: Path) -> None:
    measured("exchange", tmp_path, PROMISED)
