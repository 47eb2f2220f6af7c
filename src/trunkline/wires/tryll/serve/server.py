"""The server end of the Tryll wire.

    server = TryllServer(host)
    await server.listen("127.0.0.1", 9100)
    await server.listen_websocket("127.0.0.1", 9101)
    ...
    await server.close()

One connection is one session; `connection` has the bytes and `session` the requests. What the agents,
storages and models are is the `GraphHost`'s business.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterable

from trunkline.base import memory
from trunkline.base.listening_socket import bound
from trunkline.base.values import Value
from trunkline.core import tracing
from trunkline.core.graph.turns import Ending
from trunkline.wires.tryll.host import GraphHost
from trunkline.wires.tryll.messages import HealthResponse, ModelInfo
from trunkline.wires.tryll.serve.connection import END_SECONDS, EXTENSIONS, ServerConnection, socket_of
from trunkline.wires.tryll.serve.figures import Limit, Reason, ServerFigures
from trunkline.wires.tryll.serve.log import session_log
from trunkline.wires.tryll.serve.turns import ServedTurn

#: How long running turns may go on when the server stops. Then they are cancelled.
GRACE_SECONDS = 2.0
#: Connections that wait to be accepted.
_BACKLOG = 1024
#: How often we look whether clients that are not read have ended. They are to be gone within five seconds.
_LOOK_SECONDS = 0.5
#: The state of a connection whose peer has ended and we have not, as Linux counts them.
_CLOSE_WAIT = 8
#: How long after a client has gone its memory is given back, with that of all others who went meanwhile.
_GIVE_BACK_SECONDS = 0.5
#: Bytes that are read at once.
_READ = 256 * 1024


class ServerSettings(Value):
    """What can be set. `token`: what each client must say when it configures its session; "" for nothing."""

    token: str = ""
    stall_seconds: float = 300.0
    """How long a client may be behind and take nothing.

    Its system tells of what it reads in steps: on the same machine of 128 KiB as a rule, and of up to 400 KiB. So one
    that reads 2 KiB in a second is seen to take something in this time, and stays.
    """
    frame_seconds: float = 60.0
    """How long a frame may take from its first byte to its last, and with a token a session until it is configured."""
    max_clients: int = 0
    """How many may be connected at once; 0: as many as there is room for."""
    max_agents: int = 0
    """How many agents a connection may have at once; 0: as many as any session may."""
    turns_per_minute: int = 0
    """How many turns of a connection may begin within a minute; 0: any number."""


class TryllServer:
    """All sessions of one host, on any number of addresses."""

    def __init__(
        self, host: GraphHost, settings: ServerSettings | None = None, figures: ServerFigures | None = None
    ) -> None:
        self.host = host
        self.settings = settings if settings is not None else ServerSettings()
        self.loop = asyncio.get_running_loop()
        self.extensions = (*EXTENSIONS, "token") if self.settings.token else EXTENSIONS
        self.stopping = False
        self.buffer = memoryview(bytearray(_READ))
        """What connections read into, one after the other."""
        self.connections: set[ServerConnection] = set()
        self.agents = 0
        """How many there are in all sessions."""
        self.turns: set[ServedTurn] = set()
        """Those that are under way."""
        self.figures = figures
        """None unless somebody asks for them."""
        self.clients = self.accepted = self.tokens = 0
        """Those who are let in, all who ever connected, and the tokens that were generated for them."""
        self._turned_away: set[ServerConnection] = set()
        """Those that there was no room for, until they have gone."""
        self.log = session_log(self.loop)
        """None unless somebody reads it."""
        self.tracer = tracing.tracer
        """None unless somebody follows what happens."""
        self._began = self.loop.time()
        self._listed: asyncio.Task[tuple[ModelInfo, ...]] | None = None
        """The list of models that is being made, or was made last."""
        self._listing: asyncio.Task[tuple[ModelInfo, ...]] | None = None
        """The one that comes after it."""
        self._servers: list[asyncio.Server] = []
        self._dirty: list[ServerConnection] = []
        self._unfinished: dict[ServerConnection, float] = {}
        self._unread: set[ServerConnection] = set()
        self._look: asyncio.TimerHandle | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self._giving_back: asyncio.TimerHandle | None = None
        self._changed: asyncio.Future[None] | None = None

    async def listen(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> tuple[str, int]:
        """Take connections at an address; gives the real one.

        Raises:
            OSError: that does not work.
        """
        return await self._listen(lambda: ServerConnection(self), host, port, tls)

    async def listen_websocket(
        self, host: str, port: int, tls: ssl.SSLContext | None = None, *, origins: Iterable[str] = ()
    ) -> tuple[str, int]:
        """Take WebSockets at an address; gives the real one.

        Args:
            origins: whose pages may connect, besides those of this machine and of the server's own name.

        Raises:
            OSError: that does not work.
            ModuleNotFoundError: `websockets` is not installed.
        """
        # Imported when it is asked for: most servers have no WebSocket.
        from trunkline.wires.tryll.serve.origins import AllowedOrigins
        from trunkline.wires.tryll.serve.websocket import WebSocketConnection

        allowed = AllowedOrigins(host, origins)
        return await self._listen(lambda: WebSocketConnection(self, allowed), host, port, tls)

    async def _listen(
        self, make: Callable[[], ServerConnection], host: str, port: int, tls: ssl.SSLContext | None
    ) -> tuple[str, int]:
        sockets = await bound(host, port)
        for each in sockets:
            # Inherited by what is accepted: a peer whose machine is gone does not stay for ever.
            each.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            made = await self.loop.create_server(make, sock=each, backlog=_BACKLOG, ssl=tls)
            self._servers.append(made)
        address = sockets[0].getsockname()
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
        for timer in (self._sweep, self._look, self._giving_back):
            if timer is not None:
                timer.cancel()
        # Of clients that are gone: what they use is let go of before whoever has it is closed.
        ending = [turn.task for turn in self.turns if turn.task is not None]
        for task in ending:
            task.cancel()
        if ending:
            await asyncio.wait(ending, timeout=END_SECONDS)

    async def _until_quiet(self, seconds: float) -> None:
        """Wait until there is no connection."""
        try:
            async with asyncio.timeout(seconds):
                while self.connections:
                    self._changed = self.loop.create_future()
                    await self._changed
        except TimeoutError:
            return

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """The catalog as it is now. To look at it means to look at files: one thread does it for all who ask."""
        if self._listing is None:
            self._listing = self.loop.create_task(self._list_models(self._listed))
        return await asyncio.shield(self._listing)

    async def _list_models(self, before: asyncio.Task[tuple[ModelInfo, ...]] | None) -> tuple[ModelInfo, ...]:
        if before is not None:
            # It looks at what was there when it began; whoever asks now gets what is there now.
            await asyncio.wait({before})
        self._listed, self._listing = self._listing, None
        return await asyncio.to_thread(self.host.models.list)

    def health(self, request_id: int) -> HealthResponse:
        """How the server is. Turns that are running and have said nothing yet count as waiting."""
        return HealthResponse(
            request_id,
            "stopping" if self.stopping else "ready",
            int((self.loop.time() - self._began) * 1000),
            len(self.connections) - len(self._turned_away),
            self.agents,
            len(self.turns),
            sum(not turn.begun for turn in self.turns),
            self.tokens,
            len(there := self.host.models.resident()),
            sum(each.memory_bytes for each in there),
        )

    # For connections.

    def entered(self, connection: ServerConnection) -> None:
        """There is one more, which gets the id of its session."""
        self.connections.add(connection)
        self.accepted += 1
        connection.id = self.accepted
        if self.log is not None:
            self.log.entered(connection)

    def admits(self, connection: ServerConnection) -> bool:
        """Whether there is room for this client; then it counts until it has left."""
        most = self.settings.max_clients
        if most and self.clients >= most:
            self.refused("clients")
            self._turned_away.add(connection)
            return False
        connection.admitted = True
        self.clients += 1
        return True

    def refused(self, reason: Reason) -> None:
        """A client was not let in."""
        if self.figures is not None:
            self.figures.refused[reason] += 1

    def limited(self, limit: Limit) -> None:
        """A connection has asked for more than it gets."""
        if self.figures is not None:
            self.figures.limited[limit] += 1

    def turn_over(self, turn: ServedTurn, session: int, ending: Ending) -> None:
        """A turn has ended, and has said so."""
        self.turns.discard(turn)
        self.tokens += ending.tokens_generated
        turn.ended()
        if self.log is not None:
            self.log.over(turn, session, ending)
        if self.figures is not None:
            self.figures.over(turn, ending, self.host.models)

    def left(self, connection: ServerConnection) -> None:
        """There is one less."""
        self.connections.discard(connection)
        self._turned_away.discard(connection)
        self.clients -= connection.admitted
        if self.log is not None:
            self.log.left(connection)
        if self._giving_back is None and not self.stopping:
            self._giving_back = self.loop.call_later(_GIVE_BACK_SECONDS, self._give_back)
        self._unfinished.pop(connection, None)
        self._unread.discard(connection)
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)

    def _give_back(self) -> None:
        self._giving_back = None
        memory.give_back()

    def flush_soon(self, connection: ServerConnection) -> None:
        """Flush it at the end of this round of the event loop, with all others that have something to say."""
        if not self._dirty:
            self.loop.call_soon(self._flush)
        self._dirty.append(connection)

    def _flush(self) -> None:
        dirty, self._dirty = self._dirty, []
        for connection in dirty:
            connection.flush()

    def unfinished(self, connection: ServerConnection, is_so: bool, anew: bool) -> None:
        """Whether a connection has sent the beginning of a frame, and `anew`: of another one than before."""
        if not is_so:
            self._unfinished.pop(connection, None)
        elif anew or connection not in self._unfinished:
            self._unfinished[connection] = self.loop.time() + self.settings.frame_seconds
            if self._sweep is None:
                self._sweep = self.loop.call_later(self.settings.frame_seconds, self._sweep_unfinished)

    def not_reading(self, connection: ServerConnection) -> None:
        """A connection is not read for now. Until it is, nobody would tell us that its client has ended."""
        self._unread.add(connection)
        if self._look is None:
            self._look = self.loop.call_later(_LOOK_SECONDS, self._look_after_unread)

    def _look_after_unread(self) -> None:
        self._look = None
        for connection in [each for each in self._unread if _has_ended(each)]:
            self._unread.discard(connection)
            connection.eof_received()
        if self._unread:
            self._look = self.loop.call_later(_LOOK_SECONDS, self._look_after_unread)

    def reading_again(self, connection: ServerConnection) -> None:
        """It was not read for a while: the rest of its frame has all its time from now on."""
        self._unread.discard(connection)
        if connection in self._unfinished:
            self._unfinished[connection] = self.loop.time() + self.settings.frame_seconds

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


def _has_ended(connection: ServerConnection) -> bool:
    """Whether the client has said all that it will, where the system tells."""
    option, ours = getattr(socket, "TCP_INFO", None), socket_of(connection.transport)
    if option is None or ours is None:
        return False
    try:
        found = ours.getsockopt(socket.IPPROTO_TCP, option, 1)
    except OSError:
        return False
    return bool(found[0] == _CLOSE_WAIT)
