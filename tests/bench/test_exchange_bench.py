"""The benchmark of the exchange runs, and every row has the control and the goal that it was given."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.benchmarks import PATIENCE_SECONDS, measured

PROMISED = [
    ("2 sessions at once, in process", "no exchange", "CPU >= 0.5"),
    ("2 sessions over HTTP", "without the exchange", "CPU >= 0.5"),
    ("2 sessions over JSON stream", "without the exchange", "CPU >= 0.5"),
    ("2 sessions over Tryll", "without the exchange", "CPU >= 0.5"),
    ("a word over HTTP, p99", "without, and 5 ms", "wall <= 1"),
    ("a word over JSON stream, p99", "without, and 5 ms", "wall <= 1"),
    ("a word over Tryll, p99", "without, and 5 ms", "wall <= 1"),
    ("a turn with 100 watchers, over HTTP", "with one", "CPU <= 3"),
    ("a turn with 100 watchers, over HTTP, 20 ms a word", "with one", None),
    ("a turn with 100 watchers, in process", "with one", "CPU <= 3"),
    ("an idle session", "the limit", "wall <= 1"),
]


@pytest.mark.process
@pytest.mark.timeout(PATIENCE_SECONDS)
def test_every_row_is_measured_against_its_control(tmp_path: Path) -> None:
    measured("exchange", tmp_path, PROMISED)
