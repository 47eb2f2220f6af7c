"""Performers of transactions on the embedded chain, behind a node that can be made to misbehave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.chain import Node, community, settings
from trunkline.runner.chain.book import FileBooks
from trunkline.runner.chain.performer import TxPerformer

SEND = "eth_sendRawTransaction"
RECEIPT = "eth_getTransactionReceipt"


class World:
    """A chain, a node before it, the contract, and a home."""

    def __init__(self, node: Node, address: str, home: Path) -> None:
        self.node = node
        self.community = community(address)
        self.home = str(home)
        self._made: list[TxPerformer] = []

    def performer(self, *, url: str | None = None, agent: str = "a1", **more: Any) -> TxPerformer:
        made = TxPerformer(settings(url or self.node.url, **more), FileBooks(self.home), agent_id=agent)
        self._made.append(made)
        return made

    async def count(self) -> int:
        """What the contract counted, past all misbehaviour."""
        selector = "0x06661abd"
        to = self.community["contracts"][0]["address"]
        return int(await self.node.ask("eth_call", {"to": to, "data": selector}, "latest"), 16)

    async def nonce(self, hash: str | None) -> int:
        return int((await self.node.ask("eth_getTransactionByHash", hash))["nonce"], 16)

    async def close(self) -> None:
        for performer in self._made:
            await performer.close()
