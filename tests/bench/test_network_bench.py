"""The benchmark of the network runs, and every row has the control and the goal that it was given."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.benchmarks import PATIENCE_SECONDS, measured

PROMISED = [
    ("signed writes", "one commit for each", "wall >= 2"),
    ("signed writes", "a plain ASGI handler", "wall >= 0.5"),
    ("context of 200 threads", "of 100 threads", "wall <= 2"),
]


@pytest.mark.process
@pytest.mark.long
@pytest.mark.timeout(PATIENCE_SECONDS)
def test_every_row_is_measured_against_its_control(tmp_path: Path) -> None:
    measured("network", tmp_path, PROMISED)
