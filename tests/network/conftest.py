"""Databases for tests of the network. A test that takes `database` or `database_url` runs on both kinds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.conftest import require
from tests.network.world import World, world
from tests.support import postgres
from trunkline.network.open_database import open_database
from trunkline.store.database import Database

#: `make check` looks at SQLite alone: a database of a server costs more than most tests.
DIALECTS = ("sqlite", pytest.param("postgresql", marks=pytest.mark.slow))


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The URL of a SQLite database that does not exist yet."""
    return f"sqlite:///{tmp_path}/network.db"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[postgres.Postgres]:
    """A PostgreSQL server for all tests of this process."""
    require("PostgreSQL", postgres.available(), "on Debian: apt-get install postgresql")
    with postgres.shared_server() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: postgres.Postgres) -> Iterator[str]:
    """The URL of an empty PostgreSQL database, which is removed afterwards."""
    with postgres_server.database() as url:
        yield url


@pytest.fixture(params=DIALECTS)
def database_url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty database, of one kind after the other."""
    # Asked for by name, so that tests on SQLite alone start no server.
    url: str = request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "postgres_url")
    return url


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """An open database with all tables and no rows, of one kind after the other."""
    database = await open_database(database_url)
    yield database
    await database.close()


@pytest.fixture
async def sqlite_database(sqlite_url: str) -> AsyncIterator[Database]:
    """The same on SQLite alone, for what does not depend on the kind."""
    database = await open_database(sqlite_url)
    yield database
    await database.close()


@pytest.fixture
async def net(database: Database) -> AsyncIterator[World]:
    """A network, on one kind of database after the other."""
    async with world(database) as made:
        yield made


@pytest.fixture
async def lite(sqlite_database: Database) -> AsyncIterator[World]:
    """A network on SQLite alone: for rules that no database decides."""
    async with world(sqlite_database) as made:
        yield made
