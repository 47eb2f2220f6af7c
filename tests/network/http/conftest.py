"""A network to use: on SQLite, and for what depends on the database on both kinds."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.owner_world import World
from trunkline.store.database import Database


@pytest.fixture
async def world(sqlite_database: Database) -> AsyncIterator[World]:
    """A network on SQLite."""
    world = World(sqlite_database)
    yield world
    await world.client.aclose()


@pytest.fixture
async def each_world(database: Database) -> AsyncIterator[World]:
    """A network on one kind of database after the other."""
    world = World(database)
    yield world
    await world.client.aclose()
