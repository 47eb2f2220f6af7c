"""Where a browser comes back to when somebody has logged in: a server on this machine, for that one request.

It answers with a page that says what came of it, so it waits with that until the tokens are there, or are not. What
does not belong to this login changes nothing: any page can make a browser call an address of this machine, and does
not know the `state` that the request must have.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from html import escape
from secrets import compare_digest
from urllib.parse import parse_qsl, urlsplit

import h11

from trunkline.base.cutting import cut_between_words
from trunkline.base.hosts import Hosts
from trunkline.base.printable import printable_line
from trunkline.base.values import Value
from trunkline.core.starting import cannot_listen
from trunkline.tools.mcp.connection import McpError
from trunkline.tools.mcp.oauth.requests import LoginFailed

#: Only this machine can reach it.
HOST = "127.0.0.1"
PATH = "/callback"
#: A browser's request for a page has a few hundred bytes; the code in it may have thousands.
MOST_HEAD_BYTES = 1 << 15
#: A browser that has connected sends its request at once.
REQUEST_SECONDS = 10.0
#: How long it waits for the page: as long as the tokens may take to come.
PAGE_SECONDS = 60.0
#: How long the page may take to be written when all is over.
GOODBYE_SECONDS = 2.0

#: Of a stranger's words.
_SAID_CHARS = 300
_MOST_MEMBERS = 20
_READ_BYTES = 1 << 14

_STRAY = "This is not the answer to the login that is waited for. Begin again, and use the newest address."


class LoginAnswer(Value):
    """What the authorization server has sent back with the browser."""

    code: str
    state: str
    issuer: str | None = None

    def __repr__(self) -> str:
        return "LoginAnswer()"


class StrayAnswer(McpError):
    """It belongs to no login, or to another one."""


class LoginRefused(LoginFailed):
    """The authorization server, or the person there, has said no."""


def read_answer(query: str, state: str) -> LoginAnswer:
    """What the members behind an address's `?` say.

    Raises:
        StrayAnswer: they are not for the login with this `state`.
        LoginRefused: there is no login.
    """
    try:
        pairs = parse_qsl(query, max_num_fields=_MOST_MEMBERS)
    except ValueError:
        raise StrayAnswer from None
    members = dict(pairs)
    if len(members) < len(pairs) or not compare_digest(members.get("state", "").encode(), state.encode()):
        raise StrayAnswer
    if "error" in members:
        said = f"{members['error']}: {members.get('error_description', '')}".rstrip(": ")
        raise LoginRefused(f"refused the login ({printable_line(cut_between_words(said, _SAID_CHARS))})")
    if not members.get("code"):
        raise StrayAnswer
    return LoginAnswer(members["code"], state, members.get("iss"))


class LoginListener:
    """Listens for the answer to one login."""

    def __init__(self, server: str, path: str) -> None:
        self._server = server
        self._path = path
        self._hosts = Hosts()
        self._state: str | None = None
        loop = asyncio.get_running_loop()
        self._answer: asyncio.Future[LoginAnswer] = loop.create_future()
        self._outcome: asyncio.Future[str] = loop.create_future()
        self._visits: set[asyncio.Task[None]] = set()
        self.redirect_uri = ""

    @classmethod
    @asynccontextmanager
    async def opened(cls, server: str, redirect_uri: str | None = None) -> AsyncIterator[LoginListener]:
        """Within the block somebody listens, on any port that is free unless `redirect_uri` names one.

        Raises:
            ConfigError: nobody can listen there.
        """
        parts = urlsplit(redirect_uri or f"http://{HOST}{PATH}")
        listener = cls(server, parts.path or "/")
        try:
            listening = await asyncio.start_server(listener._visited, HOST, parts.port or 0)
        except OSError as error:
            hint = "End what listens there, or change `redirect_uri` of the server, here and where it is registered."
            raise cannot_listen(HOST, parts.port or 0, error, hint) from None
        port = listening.sockets[0].getsockname()[1]
        listener.redirect_uri = f"http://{parts.hostname}:{port}{parts.path}"
        try:
            yield listener
        finally:
            listening.close()
            await listener._leave()

    def expect(self, state: str) -> None:
        """From now on the answer with this `state` is taken."""
        self._state = state

    async def answer(self) -> LoginAnswer:
        """Wait for it.

        Raises:
            LoginRefused: there is no login.
        """
        return await asyncio.shield(self._answer)

    def tell(self, outcome: str) -> None:
        """Let the page say what came of it."""
        if not self._outcome.done():
            self._outcome.set_result(outcome)

    async def _leave(self) -> None:
        self.tell("The login was given up.")
        if self._answer.done() and not self._answer.cancelled():
            # Whoever waited for it may have gone before it came.
            self._answer.exception()
        if self._visits:
            _, late = await asyncio.wait(self._visits, timeout=GOODBYE_SECONDS)
            for visit in late:
                visit.cancel()
            if late:
                await asyncio.wait(late)

    async def _visited(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visit = asyncio.current_task()
        if visit is None:
            return
        self._visits.add(visit)
        visit.add_done_callback(self._visits.discard)
        try:
            connection = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_HEAD_BYTES)
            async with asyncio.timeout(REQUEST_SECONDS):
                request = await _request(connection, reader)
            if request is not None:
                status, text = await self._page(request)
                writer.write(_sent(connection, status, _html(text, self._server)))
                await writer.drain()
        except (OSError, TimeoutError, h11.ProtocolError):
            # Not a browser, or one that has gone.
            return
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _page(self, request: h11.Request) -> tuple[int, str]:
        target = request.target.decode("ascii", "replace")
        path, _, query = target.partition("?")
        hosts = [value for name, value in request.headers if name == b"host"]
        if len(hosts) != 1 or not self._hosts.allow(hosts[0].decode("latin-1")):
            return 421, "This is not the address of a login."
        if path != self._path or request.method != b"GET":
            return 404, "There is nothing here."
        if self._state is None or self._answer.done():
            return 400, _STRAY
        try:
            self._answer.set_result(read_answer(query, self._state))
        except StrayAnswer:
            return 400, _STRAY
        except LoginRefused as refused:
            self._answer.set_exception(refused)
        try:
            async with asyncio.timeout(PAGE_SECONDS):
                return 200, await asyncio.shield(self._outcome)
        except TimeoutError:
            return 200, "The answer has arrived. Look where you began the login for what came of it."


async def _request(connection: h11.Connection, reader: asyncio.StreamReader) -> h11.Request | None:
    while True:
        event = connection.next_event()
        if isinstance(event, h11.Request):
            return event
        if event is not h11.NEED_DATA:
            return None
        data = await reader.read(_READ_BYTES)
        if not data:
            return None
        connection.receive_data(data)


def _sent(connection: h11.Connection, status: int, body: bytes) -> bytes:
    headers: Iterable[tuple[str, str]] = (
        ("Content-Type", "text/html; charset=utf-8"),
        ("Content-Length", str(len(body))),
        ("Cache-Control", "no-store"),
        ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
        # The address of this page holds the code.
        ("Referrer-Policy", "no-referrer"),
        ("X-Content-Type-Options", "nosniff"),
        ("Connection", "close"),
    )
    parts = (
        connection.send(h11.Response(status_code=status, headers=list(headers))),
        connection.send(h11.Data(data=body)),
        connection.send(h11.EndOfMessage()),
    )
    return b"".join(part or b"" for part in parts)


def _html(text: str, server: str) -> bytes:
    title = escape(f"Trunkline: login to {server}")
    page = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        '<body style="font: 1.1em sans-serif; max-width: 40em; margin: 4em auto; padding: 0 1em">'
        f"<h1>{title}</h1><p>{escape(text)}</p></body></html>\n"
    )
    return page.encode("utf-8", "replace")
