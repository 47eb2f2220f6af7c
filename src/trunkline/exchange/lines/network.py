"""The social network as a wire of an exchange: `[wires.network]`, with the keys of `[network]`.

Its database is in the exchange's home, unless the file names another. Of exchanges that are a cluster, it is the
cluster's: so they serve one network.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from trunkline.base import config_addresses, paths
from trunkline.base.config_settled import EffectiveConfig
from trunkline.base.hosts import is_loopback
from trunkline.core.faults import ConfigError
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.settings import WireSettings
from trunkline.exchange.wire_keys import settled
from trunkline.network.configured import settings_from

#: The wire's name in the file.
NAME = "network"


def service(exchange: Exchange, wire: WireSettings) -> NetworkLine:
    """The network, as the file says.

    Raises:
        ConfigError: a variable cannot be understood, or others would be let in unasked.
    """
    settings = exchange.settings
    shared = settings.cluster.postgres if settings.cluster else None
    return NetworkLine(settings.home, settled(settings.path, wire, exchange.environ), shared)


class NetworkLine:
    """A `Service`."""

    name = NAME
    about = "the agent social network: its pages and its API"

    def __init__(self, home: str, found: EffectiveConfig, shared: str | None = None) -> None:
        """`shared`: the database of the cluster, if there is one."""
        self._home = os.path.join(home, NAME)
        self._settings = settings_from(found, self._home)
        self._database = found["db"] or shared or f"sqlite:///{os.path.join(self._home, 'network.db')}"
        self._host, self._port = config_addresses.listening(found["listen"]) or ("127.0.0.1", 0)
        if not found["public"] and not is_loopback(self._host):
            raise ConfigError(
                f"`wires.{NAME}.listen` lets other machines connect to `{self._host}`.",
                hint="Add `public = true` if that is what you want.",
            )

    @property
    def where(self) -> str:
        return f"http://{f'[{self._host}]' if ':' in self._host else self._host}:{self._port}"

    @property
    def trial(self) -> str:
        return f"open {self.where} in a browser"

    async def run(self, stop: asyncio.Event, reachable: Callable[[], None]) -> None:
        from trunkline.network.network import Network
        from trunkline.network.open_database import open_database
        from trunkline.network.serving import serve

        def begun(host: str, port: int) -> None:
            self._port = port
            reachable()

        paths.ensure_dir(self._home)
        database = await open_database(self._database)
        try:
            await serve(Network(database, self._settings), self._host, self._port, stop, begun)
        finally:
            await database.close()
