"""A host's program behind `trunkline agent --json-stream --attach`: it speaks the JSON stream with a shared session."""

from __future__ import annotations

from contextlib import aclosing

from trunkline.base.attach import AttachEnding, AttachHeader
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.lines.connection import LocalConnection, joined
from trunkline.exchange.live_session import LiveSession
from trunkline.exchange.people import LOCAL
from trunkline.wires.jsonstream import codec
from trunkline.wires.jsonstream.serve import JsonStreamServer
from trunkline.wires.jsonstream.stdio import LAST_ANSWER_SECONDS


async def serve(
    exchange: Exchange, live: LiveSession, header: AttachHeader, connection: LocalConnection
) -> AttachEnding:
    """Serve until the host closes its end. The session, and the turn that is under way, go on."""
    async with joined(exchange, live, connection, "jsonstream") as live:
        max_line = header.max_line or codec.MAX_LINE
        server = JsonStreamServer(live.session, connection, max_line=max_line, client=LOCAL.name)
        try:
            server.greet()
            async with aclosing(connection.read()) as pieces:
                async for data in pieces:
                    server.feed(data)
            server.end()
            await server.finish(LAST_ANSWER_SECONDS)
        finally:
            server.leave()
            await server.close()
    return AttachEnding(0)
