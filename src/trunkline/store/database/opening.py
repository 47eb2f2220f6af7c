"""Opening a database by its URL."""

from __future__ import annotations

import importlib.util

from trunkline.base.extras import adding
from trunkline.core.faults import ConfigError
from trunkline.store.database import Database
from trunkline.store.database.form import Form

_SQLITE = "sqlite:///"
_POSTGRES = ("postgresql://", "postgres://")


async def open_database(url: str, form: Form) -> Database:
    """Open a database, and bring it to the form that this version expects.

    Args:
        url: `sqlite:///PATH` for a file (`sqlite:////srv/network.db` is absolute), which is made where it is missing;
            or `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`.

    Raises:
        ConfigError: it cannot be opened. The text has no password in it.
    """
    if url.startswith(_SQLITE):
        # Here, since whoever has a server needs neither SQLite nor a file.
        from trunkline.store.database.sqlite import open_sqlite

        return await open_sqlite(_path(url), form)
    if url.startswith(_POSTGRES):
        if importlib.util.find_spec("psycopg") is None:
            raise ConfigError("PostgreSQL needs a package that is not installed.", hint=adding("postgres"))
        from trunkline.store.database.postgres import open_postgres

        return await open_postgres(url, form)
    raise ConfigError(
        "The database's URL is neither SQLite's nor PostgreSQL's.",
        hint="Write `sqlite:///PATH` (four slashes before an absolute path) or `postgresql://HOST/DATABASE`.",
    )


def _path(url: str) -> str:
    """The file that is meant: what stands after the third slash, letter by letter."""
    path = url.removeprefix(_SQLITE)
    if not path or path.startswith(":memory:") or "\0" in path:
        raise ConfigError(
            f"`{_SQLITE}` must be followed by the path of a file.", hint="For example `sqlite:///net.db`."
        )
    return path
