"""Fixtures for tests of what a store promises."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.shelves import Shelf
from trunkline.core.log import SessionStore


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    shelf = Shelf(tmp_path)
    yield shelf
    shelf.close()


@pytest.fixture
def store(shelf: Shelf) -> SessionStore:
    return shelf.store()
