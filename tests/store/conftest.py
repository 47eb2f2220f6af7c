"""Fixtures for tests that hold for either store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.shelves import KINDS, Shelf
from trunkline.core.log import SessionStore


@pytest.fixture(params=KINDS)
def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shelf]:
    shelf = Shelf(request.param, tmp_path)
    yield shelf
    shelf.close()


@pytest.fixture
def store(shelf: Shelf) -> SessionStore:
    return shelf.store()
