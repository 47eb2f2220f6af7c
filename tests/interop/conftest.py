"""What tests with programs of other people share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty folder for an agent to work in, beside whatever else the test keeps."""
    place = tmp_path / "project"
    place.mkdir()
    return place
