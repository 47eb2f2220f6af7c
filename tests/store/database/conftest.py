"""The databases of the network's tests: its tables are those that there are most of."""

from tests.network.conftest import (
    database,
    database_url,
    postgres_server,
    postgres_url,
    sqlite_database,
    sqlite_url,
)

__all__ = ["database", "database_url", "postgres_server", "postgres_url", "sqlite_database", "sqlite_url"]
