"""An attached program whose wire opens sessions by itself: its server is fed what the host sends, to the end."""

from __future__ import annotations

from contextlib import aclosing
from typing import Protocol

from trunkline.base.attach import AttachEnding
from trunkline.exchange.lines.connection import LocalConnection

#: How long the answers under way may go on after the host has closed its end: as for a host on standard streams.
LAST_ANSWER_SECONDS = 0.5


class FedServer(Protocol):
    """One connection of a wire, without the pipe."""

    def feed(self, data: bytes) -> None:
        """Bytes from the client."""

    def end(self) -> None:
        """There are no more."""

    async def finish(self, seconds: float) -> None:
        """Let what the client asked for come to its end, for so long."""

    async def close(self) -> None:
        """Leave all sessions."""


async def fed(connection: LocalConnection, server: FedServer) -> AttachEnding:
    """Serve until the host closes its end. The sessions, and the turns that are under way there, go on.

    Raises:
        Fault: the host does not read, and was disconnected.
        ConnectionError: it is gone.
    """
    try:
        async with aclosing(connection.read()) as pieces:
            async for data in pieces:
                server.feed(data)
        server.end()
        await server.finish(LAST_ANSWER_SECONDS)
    finally:
        await server.close()
    return AttachEnding(0)
