"""A host's program behind `trunkline mcp serve --attach`: agents of the exchange are tools on its standard streams."""

from __future__ import annotations

import asyncio
from importlib import import_module

from trunkline.base.attach import AttachEnding, AttachHeader
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.keeper import ExchangeKeeper
from trunkline.exchange.lines.connection import LocalConnection
from trunkline.exchange.lines.fed import fed
from trunkline.exchange.people import LOCAL


async def serve(exchange: Exchange, header: AttachHeader, connection: LocalConnection) -> AttachEnding:
    """Serve until the host closes its end."""
    # In a thread: the SDK imports for half a second, and all sessions would stand still.
    await asyncio.to_thread(import_module, "trunkline.wires.mcp.lines")
    from trunkline.wires.mcp.agents import AgentsOffer
    from trunkline.wires.mcp.lines import McpLines
    from trunkline.wires.mcp.serve import Client, mcp_server

    offer = AgentsOffer(header.agents)
    client = Client(ExchangeKeeper(exchange, LOCAL, "mcp"), LOCAL.name)
    try:
        return await fed(connection, McpLines(mcp_server(offer, lambda _: client), connection))
    finally:
        await offer.close()
