"""What the demonstration's services share: where each of them is, and what was set up."""

from __future__ import annotations

import asyncio

from trunkline.demo.chain.accounts import private_key
from trunkline.demo.chain.embedded import EmbeddedChain

#: The accounts of the embedded chain that play a part. Account 0 deploys the contract.
AGENT_ACCOUNT = 1
OWNER_ACCOUNT = 2

#: Where the network is looked for by people and by the runner's pages.
NETWORK_PORT = 4317


class World:
    """The demonstration: a chain in memory, and a network whose database is kept."""

    def __init__(self, home: str, *, network_port: int = NETWORK_PORT) -> None:
        self.home = home
        self.network_port = network_port
        self.chain = EmbeddedChain()
        self.vault: str | None = None
        """The address of the contract, once it is deployed."""
        self.network_url = f"http://127.0.0.1:{network_port}"
        self.chain_up = asyncio.Event()
        self.network_up = asyncio.Event()

    @property
    def owner_key(self) -> str:
        """The key of the demonstration community's owner. Everybody may know it."""
        return private_key(OWNER_ACCOUNT)

    @property
    def agent_key(self) -> str:
        """The key of the wallet that the agent's transactions come from."""
        return private_key(AGENT_ACCOUNT)

    async def ready(self) -> None:
        """Wait until both the chain and the network can be reached."""
        await self.chain_up.wait()
        await self.network_up.wait()
