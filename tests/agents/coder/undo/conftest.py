"""A workspace of its own, and a home of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.undone import UndoWorld


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> UndoWorld:
    monkeypatch.setenv("TRUNKLINE_HOME", str(tmp_path / "home"))
    return UndoWorld(tmp_path)
