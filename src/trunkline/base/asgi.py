"""An ASGI application as a server: uvicorn in the event loop that is running, until it is told to stop.

It ends in bounded time: answers that have begun get a few seconds, and the rest is cut off. Signals are left to the
program that it is a part of.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from trunkline.base import open_files
from trunkline.base.listening_socket import ListeningSocket

if TYPE_CHECKING:
    from uvicorn import Server

    from trunkline.base.asgi_protocol import Refusal

#: How long answers that have begun may take when the server is to stop.
GRACE_SECONDS = 4
#: Connections that the system keeps for us while we are busy: enough for a burst of clients.
BACKLOG = 512
#: Those that the program needs for itself.
OWN_FILES = 124
#: Connections at once, if the system lets us: each costs some kilobytes.
MAX_CONNECTIONS = 10_000
#: How long a connection may be idle between two requests.
KEEP_ALIVE_SECONDS = 15


class CannotListen(OSError):
    """The address cannot be had; `strerror` says why."""


async def serve(
    app: Any,
    host: str,
    port: int,
    stop: asyncio.Event,
    reachable: Callable[[str, int], None],
    *,
    stopping: Callable[[], None] = lambda: None,
    websockets: int = 0,
) -> None:
    """Serve until `stop` is set.

    Args:
        port: 0 for any that is free.
        reachable: told the address and the port as soon as requests are answered.
        stopping: called before answers that have begun are waited for: to end those that never would.
        websockets: the largest message of a WebSocket, in bytes; 0: there are none.

    Raises:
        CannotListen: it cannot listen there.
        ModuleNotFoundError: uvicorn is not installed, or for WebSockets `websockets`.
    """
    with listening(host, port) as listener:
        begun = partial(reachable, host, listener.getsockname()[1])
        await serve_on(app, listener, stop, begun, stopping=stopping, websockets=websockets)


async def serve_on(
    app: Any,
    listener: socket.socket,
    stop: asyncio.Event,
    reachable: Callable[[], None] = lambda: None,
    *,
    stopping: Callable[[], None] = lambda: None,
    websockets: int = 0,
    refusal: Refusal | None = None,
) -> None:
    """The same on a socket that listens already, of any kind. It stays the caller's to close.

    `refusal`: how is told what is refused before the application hears of it, if not as `{"error": text}`.
    """
    server = _server(app, reachable, websockets, refusal)
    serving = asyncio.create_task(server.serve([listener]), name="server")
    waiting = asyncio.create_task(stop.wait(), name="wait for stop")
    try:
        await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        server.should_exit = True
        stopping()
        await asyncio.wait({serving})
    serving.result()


def _server(app: Any, started: Callable[[], None], websockets: int, refusal: Refusal | None) -> Server:
    import uvicorn

    from trunkline.base.asgi_protocol import BoundedHttp, ConnectionLimit, plain

    protocol = partial(BoundedHttp, room=ConnectionLimit(most_connections()), refusal=refusal or plain)

    class Quiet(uvicorn.Server):
        """Says when it is ready, and nothing else."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                started()

    return Quiet(
        uvicorn.Config(
            app,
            http=cast("type[asyncio.Protocol]", protocol),
            ws="websockets-sansio" if websockets else "none",
            ws_max_size=websockets,
            ws_per_message_deflate=False,
            lifespan="off",
            access_log=False,
            log_config=None,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
    )


def most_connections() -> int:
    """How many connections there may be, after the system was asked for more open files than usual."""
    return max(1, min(MAX_CONNECTIONS, open_files.allow_many() - OWN_FILES))


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that listens there as long as the block lasts; port 0 for any that is free.

    Raises:
        CannotListen: it cannot be had.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # With its protocol, which asyncio looks at before it sends small packets at once: else answers take 40 ms.
        listener = ListeningSocket(family, kind, protocol)
    except OSError as error:
        raise CannotListen(error.errno, error.strerror) from None
    with listener:
        # A server that was killed must come back to its port although old connections linger.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
            listener.listen(BACKLOG)
        except OSError as error:
            raise CannotListen(error.errno, error.strerror) from None
        yield listener
