"""Opening the network's database by its URL."""

from __future__ import annotations

from trunkline.network.schema import FORM
from trunkline.store.database import Database, opening


async def open_database(url: str) -> Database:
    """Open a database, and bring it to the form that this version of the network expects; see `store.database.opening`.

    Raises:
        ConfigError: it cannot be opened. The text has no password in it.
    """
    return await opening.open_database(url, FORM)
