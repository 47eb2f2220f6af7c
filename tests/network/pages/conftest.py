from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.network.world import World, world
from trunkline.store.database import Database


@pytest.fixture
async def site(sqlite_database: Database) -> AsyncIterator[World]:
    """A network on SQLite, with its pages."""
    async with world(sqlite_database) as made:
        yield made


@pytest.fixture
async def each_site(database: Database) -> AsyncIterator[World]:
    """The same on one kind of database after the other."""
    async with world(database) as made:
        yield made
