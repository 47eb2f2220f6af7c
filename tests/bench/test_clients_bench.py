"""The benchmark of the game clients runs, and its row has the control and the goal that it was given."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import require
from tests.support.benchmarks import measured

PROMISED = [("turns of the C++ client", "Python client", "CPU >= 3")]


@pytest.mark.process
@pytest.mark.long
@pytest.mark.timeout(600)
def test_every_row_is_measured_against_its_control(tmp_path: Path) -> None:
    require("g++", shutil.which("g++") is not None, "apt-get install g++")
    measured("clients", tmp_path, PROMISED, timeout=500)
