"""What `trunkline up` can run: services, and the list of those there are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from trunkline.base.extras import adding
from trunkline.core.faults import ConfigError

#: The packages of the extra `up` that nothing runs without.
_NEEDED = (
    "eth", "eth_abi", "eth_account", "jinja2", "json_repair", "numpy", "regex", "starlette", "uvicorn", "websockets",
    "xllamacpp",
)  # fmt: skip


class Service(Protocol):
    """Something that can be reached from outside, and lives in this process's event loop."""

    @property
    def name(self) -> str:
        """A short name for lists and logs."""

    @property
    def where(self) -> str:
        """The address; true once `run` has said that it can be reached."""

    @property
    def about(self) -> str:
        """What the address is good for, in a few words; true when `where` is."""

    @property
    def trial(self) -> str:
        """A command that tries it."""

    async def run(self, stop: asyncio.Event, reachable: Callable[[], None]) -> None:
        """Serve until `stop` is set; call `reachable` as soon as somebody could connect.

        Returning before that, or raising, is a crash: it is run again. A run starts from nothing; what an earlier
        one left half done must not keep it from working. A `ConfigError` is none: somebody has to change something.
        """


def services() -> tuple[Service, ...]:
    """All that exist so far, on embedded defaults.

    Raises:
        ConfigError: what they need is not installed.
    """
    from importlib.util import find_spec

    missing = [package for package in _NEEDED if find_spec(package) is None]
    if missing:
        raise ConfigError(
            f"What it runs needs packages that are not installed: {', '.join(missing)}.", hint=adding("up")
        )
    from trunkline.exchange.console.service import ConsoleService
    from trunkline.exchange.demo.services import AgentService, ChainService, NetworkService
    from trunkline.exchange.demo.world import World
    from trunkline.exchange.tryll_service import TryllService

    world, tryll = World(), TryllService()
    return (ChainService(world), NetworkService(world), AgentService(world), tryll, ConsoleService(tryll))
