"""The server end of the Tryll wire.

    server = TryllServer(host)
    await server.listen("127.0.0.1", 9100)
    ...
    await server.close()

One connection is one session; `serve_connection` has the bytes and `serve_session` the requests. What the agents,
storages and models are is the `GraphHost`'s business.
"""

from __future__ import annotations

import asyncio
import socket
import ssl

from trunkline.base.values import Value
from trunkline.wires.tryll.host import GraphHost
from trunkline.wires.tryll.messages import HealthResponse
from trunkline.wires.tryll.serve_connection import END_SECONDS, Connection
from trunkline.wires.tryll.serve_turns import Turn

#: How long running turns may go on when the server stops. Then they are cancelled.
GRACE_SECONDS = 2.0
#: Connections that wait to be accepted.
_BACKLOG = 1024


class Settings(Value):
    """What can be set. `token`: what each client must say when it configures its session; "" for nothing."""

    token: str = ""
    stall_seconds: float = 30.0
    """How long a client may be behind without reading."""
    frame_seconds: float = 60.0
    """How long a frame may take from its first byte to its last."""


class TryllServer:
    """All sessions of one host, on any number of addresses."""

    def __init__(self, host: GraphHost, settings: Settings | None = None) -> None:
        self.host = host
        self.settings = settings if settings is not None else Settings()
        self.loop = asyncio.get_running_loop()
        self.stopping = False
        self.connections: set[Connection] = set()
        self.agents = 0
        """How many there are in all sessions."""
        self.turns: set[Turn] = set()
        """Those that are under way."""
        self._began = self.loop.time()
        self._sessions = 0
        self._servers: list[asyncio.Server] = []
        self._dirty: list[Connection] = []
        self._unfinished: dict[Connection, float] = {}
        self._sweep: asyncio.TimerHandle | None = None
        self._changed: asyncio.Future[None] | None = None

    async def listen(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> tuple[str, int]:
        """Take connections at an address; gives the real one.

        Raises:
            OSError: that does not work.
        """
        made = await self.loop.create_server(
            lambda: Connection(self), host, port, backlog=_BACKLOG, ssl=tls, start_serving=False
        )
        for each in made.sockets:
            # Inherited by what is accepted: a peer whose machine is gone does not stay for ever.
            each.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        await made.start_serving()
        self._servers.append(made)
        address = made.sockets[0].getsockname()
        return address[0], address[1]

    async def close(self) -> None:
        """Take no more work, let turns end or cancel them, and close all connections. In bounded time."""
        self.stopping = True
        for each in self._servers:
            each.close()
        for connection in list(self.connections):
            connection.stop()
        await self._until_quiet(GRACE_SECONDS)
        for connection in list(self.connections):
            connection.refuse(2001, "The server is stopping.")
        await self._until_quiet(END_SECONDS)
        for connection in list(self.connections):
            connection.cut()
        if self._sweep is not None:
            self._sweep.cancel()
        for turn in list(self.turns):
            if turn.task is not None:
                turn.task.cancel()

    async def _until_quiet(self, seconds: float) -> None:
        """Wait until there is no connection."""
        try:
            async with asyncio.timeout(seconds):
                while self.connections:
                    self._changed = self.loop.create_future()
                    await self._changed
        except TimeoutError:
            return

    def health(self, request_id: int) -> HealthResponse:
        """How the server is. Turns that are running and have said nothing yet count as waiting."""
        return HealthResponse(
            request_id,
            "stopping" if self.stopping else "ready",
            int((self.loop.time() - self._began) * 1000),
            len(self.connections),
            self.agents,
            len(self.turns),
            sum(not turn.begun for turn in self.turns),
        )

    # For connections.

    def entered(self, connection: Connection) -> int:
        """There is one more; gives the id of its session."""
        self.connections.add(connection)
        self._sessions += 1
        return self._sessions

    def left(self, connection: Connection) -> None:
        """There is one less."""
        self.connections.discard(connection)
        self._unfinished.pop(connection, None)
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)

    def flush_soon(self, connection: Connection) -> None:
        """Flush it at the end of this round of the event loop, with all others that have something to say."""
        if not self._dirty:
            self.loop.call_soon(self._flush)
        self._dirty.append(connection)

    def _flush(self) -> None:
        dirty, self._dirty = self._dirty, []
        for connection in dirty:
            connection.flush()

    def unfinished(self, connection: Connection, is_so: bool, anew: bool) -> None:
        """Whether a connection has sent the beginning of a frame, and `anew`: of another one than before."""
        if not is_so:
            self._unfinished.pop(connection, None)
        elif anew or connection not in self._unfinished:
            self._unfinished[connection] = self.loop.time() + self.settings.frame_seconds
            if self._sweep is None:
                self._sweep = self.loop.call_later(self.settings.frame_seconds, self._sweep_unfinished)

    def _sweep_unfinished(self) -> None:
        self._sweep = None
        now = self.loop.time()
        for connection in [each for each, until in self._unfinished.items() if until <= now]:
            if connection.transport.is_reading():
                del self._unfinished[connection]
                connection.refuse(5001, "The rest of the frame did not come.")
            else:
                # It may well have come: it is us who do not read.
                self._unfinished[connection] = now + self.settings.frame_seconds
        if self._unfinished:
            soonest = min(self._unfinished.values())
            self._sweep = self.loop.call_at(soonest, self._sweep_unfinished)
