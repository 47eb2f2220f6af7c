"""A few pages that say how a program is, over HTTP/1.1: for probes and for Prometheus, beside what the program serves.

    pages = StatusPages({"/healthz": healthy, "/metrics": figures}, Hosts.of("127.0.0.1"), token, ["/healthz"])
    await pages.listen("127.0.0.1", 9109)
    ...
    await pages.close()

One request per connection, and no body of one is read. This is no web server: it needs no package that a program
without pages would not have.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from hmac import compare_digest
from inspect import isawaitable

import h11

from trunkline.base.hosts import REFUSED, Hosts
from trunkline.base.listening_socket import bound
from trunkline.base.values import Value

logger = logging.getLogger(__name__)

#: From the first byte of a request to the last one of its answer. Whoever asks is near, and the answer is short.
SECONDS = 10.0
#: Connections at once: a few probes, and not whoever keeps theirs open.
MAX_CONNECTIONS = 32
#: The longest head of a request: far more than a probe sends.
MAX_HEAD_BYTES = 16 * 1024
_READ = 4096
_TEXT = "text/plain; charset=utf-8"


class StatusPage(Value):
    """An answer."""

    text: str
    status: int = 200
    media_type: str = _TEXT


Page = Callable[[], StatusPage | Awaitable[StatusPage]]
"""What makes an answer, at once or in its time, which is at most `SECONDS`."""


class StatusPages:
    """The pages, by path.

    Args:
        pages: each made anew for each request.
        hosts: the names of this server.
        token: what `Authorization: Bearer` must say for pages that are not for all; "" for nothing.
        for_all: the paths of those that are: also for those who do not say the token.
    """

    def __init__(
        self,
        pages: Mapping[str, Page],
        hosts: Hosts,
        token: str = "",
        for_all: Collection[str] = (),
    ) -> None:
        self._pages = pages
        self._hosts = hosts
        self._token = token.encode()
        self._for_all = for_all
        self._open: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Server] = []

    async def listen(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> tuple[str, int]:
        """Answer at an address, with `tls` by HTTPS only; gives the real one.

        Raises:
            OSError: that does not work.
        """
        sockets = await bound(host, port)
        # Without TLS, asyncio takes no such time.
        seconds = SECONDS if tls is not None else None
        self._servers = [
            await asyncio.start_server(
                self._begin,
                sock=each,
                limit=MAX_HEAD_BYTES,
                ssl=tls,
                ssl_handshake_timeout=seconds,
                ssl_shutdown_timeout=seconds,
            )
            for each in sockets
        ]
        address = sockets[0].getsockname()
        return address[0], address[1]

    async def close(self) -> None:
        """Answer nobody any more. Idempotent."""
        for each in self._servers:
            each.close()
        for task in self._open:
            task.cancel()
        if self._open:
            await asyncio.wait(self._open)

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) >= MAX_CONNECTIONS:
            writer.transport.abort()
            return
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer), name="status page")
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(SECONDS):
                    await self._answer(h11.Connection(h11.SERVER, MAX_HEAD_BYTES), reader, writer)
        finally:
            # Without waiting: whoever does not read has had the time for it.
            writer.close()

    async def _answer(self, state: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (event := state.next_event()) is h11.NEED_DATA:
                state.receive_data(await reader.read(_READ))
        except h11.RemoteProtocolError as error:
            page, is_head = StatusPage("Not a valid request.\n", error.error_status_hint), False
        else:
            if not isinstance(event, h11.Request):
                return
            page, is_head = await self._page(event), event.method == b"HEAD"
        body = page.text.encode()
        headers = [
            ("Content-Type", page.media_type), ("Content-Length", str(len(body))), ("Connection", "close"),
            ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"),
        ]  # fmt: skip
        if page.status == 401:
            headers.append(("WWW-Authenticate", "Bearer"))
        head = state.send(h11.Response(status_code=page.status, headers=headers))
        writer.write((head or b"") + (b"" if is_head else body))
        await writer.drain()

    async def _page(self, request: h11.Request) -> StatusPage:
        headers = dict(request.headers)
        if not self._hosts.allow(headers.get(b"host", b"").decode("latin-1")):
            return StatusPage(f"{REFUSED}\n", 400)
        path = request.target.decode("latin-1").partition("?")[0]
        make = self._pages.get(path)
        if make is None:
            return StatusPage("Not found.\n", 404)
        if request.method not in (b"GET", b"HEAD"):
            return StatusPage("This page can only be read.\n", 405)
        # Before it is made: whoever may not see it makes us no work.
        if path not in self._for_all and not self._is_trusted(headers.get(b"authorization", b"")):
            return StatusPage("Say the token: `Authorization: Bearer TOKEN`.\n", 401)
        try:
            made = make()
            return await made if isawaitable(made) else made
        except Exception:
            logger.exception("a status page failed")
            return StatusPage("This page failed: the log says why.\n", 500)

    def _is_trusted(self, said: bytes) -> bool:
        """Whether whoever says this in `Authorization` has the token, or none is needed."""
        scheme, _, given = said.partition(b" ")
        return not self._token or (scheme.lower() == b"bearer" and compare_digest(given.strip(), self._token))
