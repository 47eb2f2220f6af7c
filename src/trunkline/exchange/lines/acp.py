"""An editor's program behind `trunkline acp --attach`: it speaks the Agent Client Protocol with the exchange."""

from __future__ import annotations

from trunkline import __version__
from trunkline.base.attach import AttachEnding, AttachHeader
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.keeper import ExchangeKeeper
from trunkline.exchange.lines.connection import LocalConnection
from trunkline.exchange.lines.fed import fed
from trunkline.exchange.people import LOCAL
from trunkline.wires.acp import codec
from trunkline.wires.acp.serve import AcpServer


async def serve(exchange: Exchange, header: AttachHeader, connection: LocalConnection) -> AttachEnding:
    """Serve until the editor closes its end."""
    server = AcpServer(
        ExchangeKeeper(exchange, LOCAL, "acp"),
        connection,
        agent=header.agent,
        version=__version__,
        is_local=True,
        max_line=header.max_line or codec.MAX_LINE,
    )
    return await fed(connection, server)
