"""A host's program behind `trunkline agent --json-stream --attach`: it speaks the JSON stream with a shared session."""

from __future__ import annotations

from contextlib import aclosing

from trunkline.base.attach import AttachEnding, AttachHeader
from trunkline.core.events import UserMessage
from trunkline.core.keeper import When
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.lines.connection import LocalConnection, joined
from trunkline.exchange.lines.lagging import LaggingSink
from trunkline.exchange.live_session import LiveSession
from trunkline.exchange.people import LOCAL
from trunkline.exchange.switchboard import Switchboard
from trunkline.wires.jsonstream import codec
from trunkline.wires.jsonstream.serve_shared import KnownMessage, SharedJsonStreamServer
from trunkline.wires.stdio_host import LAST_ANSWER_SECONDS


async def serve(
    exchange: Exchange, live: LiveSession, header: AttachHeader, connection: LocalConnection
) -> AttachEnding:
    """Serve until the host closes its end. The session, and the turn that is under way, go on."""
    async with joined(exchange, live, connection, "jsonstream") as live:
        max_line = header.max_line or codec.MAX_LINE
        keeper = _KeptMessages(exchange.switchboard, live)
        server = SharedJsonStreamServer(live.session, connection, LOCAL.name, keeper, max_line=max_line)
        sink = LaggingSink(live.session, connection, server)
        try:
            server.greet()
            async with aclosing(connection.read()) as pieces:
                async for data in pieces:
                    await server.hear(data)
            await server.hear_end()
            await server.finish(LAST_ANSWER_SECONDS)
        finally:
            await sink.leave()
            await server.close()
    return AttachEnding(0)


class _KeptMessages:
    """The exchange's own."""

    def __init__(self, board: Switchboard, live: LiveSession) -> None:
        self._board = board
        self._live = live

    async def known(self, message: UserMessage) -> KnownMessage | None:
        found = await self._live.known(message.id or "")
        return None if found is None else KnownMessage(found.seq, same=found.says(message), waits=found.waits)

    async def submit(self, message: UserMessage, when: When = "queue") -> None:
        await self._board.submit(self._live, message, when)
