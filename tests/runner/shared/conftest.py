"""A PostgreSQL server, and launchers' rows on it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.network.conftest import postgres_server, postgres_url
from trunkline.runner.shared.schema import FORM
from trunkline.store.database import Database
from trunkline.store.database.opening import open_database

__all__ = ["postgres_server", "postgres_url", "rows"]


@pytest.fixture
async def rows(postgres_url: str) -> AsyncIterator[Database]:
    """An open database with all tables and nothing in them."""
    database = await open_database(postgres_url, FORM)
    yield database
    await database.close()
