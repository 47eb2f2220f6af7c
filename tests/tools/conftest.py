"""What the tests of the file tools share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.calling import Box


@pytest.fixture
def box(tmp_path: Path) -> Box:
    """The file tools in an empty directory."""
    return Box(tmp_path)
