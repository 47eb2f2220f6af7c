"""The benchmark of the faces runs, and every row has the control and the goal that it was given."""

from __future__ import annotations

from pathlib import Path

import pytest

from environments import INSTALL_SECONDS
from tests.support.benchmarks import PATIENCE_SECONDS, measured

DIRECTLY = "the model's server directly"
PROMISED = [
    ("request to first word, in a session", DIRECTLY, "wall <= 1.15"),
    ("request to first word, without a session", DIRECTLY, "wall <= 1.15"),
    ("model that answers at once, in a session", DIRECTLY, None),
    ("model that answers at once, without a session", DIRECTLY, None),
    ("model that answers at once, over a new connection", DIRECTLY, None),
    ("words of a stream", "a bare starlette handler", "CPU >= 0.6"),
    ("ACP: spawn to `initialize` answered", "python -c pass", "wall <= 9"),
    ("ACP: the official SDK's import", "python -c pass", None),
]


@pytest.mark.process
@pytest.mark.long
@pytest.mark.timeout(PATIENCE_SECONDS + INSTALL_SECONDS)
def test_every_row_is_measured_against_its_control(tmp_path: Path) -> None:
    measured("faces", tmp_path, PROMISED)
