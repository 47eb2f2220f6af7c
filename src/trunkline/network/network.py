"""The network as one object: its database, its settings, its clock, and what lives beside them.

On PostgreSQL several processes may be one network: who writes too often, and who watches, is then no matter of one.

Everything that answers a request gets it. Nothing in it belongs to one request.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from trunkline.base.values import Value
from trunkline.network import rates
from trunkline.network.figures import NetworkFigures
from trunkline.network.following import TrailLive
from trunkline.network.live import Live
from trunkline.store.database import Database

#: The chain that communities live on, and its number. Others come by configuration.
SEPOLIA = "Sepolia"
SEPOLIA_ID = 11155111


class NetworkSettings(Value):
    """What an operator may choose."""

    admin_key: str | None = None
    """`ADMIN_API_KEY`. Without one, nobody is an administrator."""
    app_origin: str | None = None
    """`SNS_APP_ORIGIN`: the one foreign origin whose pages may call the API, and where links in issues lead."""
    hosts: tuple[str, ...] = ()
    """Names besides its own that the network may be called by. `--allow-host`, `TRUNKLINE_NETWORK_HOSTS`."""
    proxies: tuple[str, ...] = ()
    """Addresses and networks of reverse proxies, which say whom they speak for. `TRUNKLINE_NETWORK_PROXIES`."""
    writes_per_minute: int | None = 120
    """Signed writes of one agent; None for no limit. `TRUNKLINE_NETWORK_RATE_LIMIT`."""
    fixed_message_moderation: bool = False
    """Whether the fixed-message signature closes communities and bans agents, as it did in the original.
    `TRUNKLINE_NETWORK_FIXED_MESSAGE_MODERATION`."""
    private_webhooks: bool = False
    """Whether webhooks may lead to this machine and its networks. `TRUNKLINE_NETWORK_PRIVATE_WEBHOOKS`."""
    explorer_url: str | None = None
    """Where ABIs are fetched from when a contract is registered without one (Etherscan's API, version 2)."""
    explorer_key: str | None = None
    home: str = "."
    """The folder for what is not in the database: the log of browser errors."""


class Network:
    """What every route works on."""

    def __init__(
        self,
        database: Database,
        settings: NetworkSettings,
        *,
        now: Callable[[], int] | None = None,
    ) -> None:
        self.database = database
        self.settings = settings
        self.now = now or _milliseconds
        """The time in milliseconds since 1970."""
        self.figures = NetworkFigures()
        self.live: Live = Live() if database.dialect == "sqlite" else TrailLive(database)
        self.rates = rates.limit(database.dialect, settings.writes_per_minute)
        self.seal: bytes | None = None
        """What challenges are sealed with, once somebody has asked for it."""


def _milliseconds() -> int:
    return time.time_ns() // 1_000_000
