"""The services that `trunkline up` runs: the demonstration's, and those of the exchange."""

from __future__ import annotations

from trunkline.base.extras import adding
from trunkline.core.faults import ConfigError
from trunkline.exchange.alone import up_home
from trunkline.exchange.service import Service

#: The packages of the extra `up` that nothing runs without.
_NEEDED = (
    "eth", "eth_abi", "eth_account", "jinja2", "json_repair", "numpy", "regex", "starlette", "uvicorn", "websockets",
    "xllamacpp",
)  # fmt: skip


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
    from trunkline.demo.services import AgentService, ChainService, NetworkService
    from trunkline.demo.world import World
    from trunkline.exchange.console.service import ConsoleService
    from trunkline.exchange.tryll_service import TryllService

    world, tryll = World(up_home()), TryllService()
    return (ChainService(world), NetworkService(world), AgentService(world), tryll, ConsoleService(tryll))
