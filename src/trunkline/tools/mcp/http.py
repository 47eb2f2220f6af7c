"""A server that is reached by HTTP: the older transport with its stream of events (`sse`), or streamable HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from trunkline.base.environ_secrets import names_a_secret
from trunkline.base.programs import own_command
from trunkline.base.redact import Clean, Redactor
from trunkline.core.agent import AddMcpServer
from trunkline.tools.mcp.transport import OnBroken, in_short, leaf, place

if TYPE_CHECKING:
    import httpx2
    from mcp.client._transport import TransportStreams

    from trunkline.tools.mcp.oauth.bearer import BearerAuth

#: For connecting and sending. Reading has no limit: a tool may take as long as it needs, and can be cancelled.
TIMEOUT_SECONDS = 30.0

_SESSION_HEADER = "mcp-session-id"
_BAD_REQUEST, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND = 400, 401, 403, 404
#: JSON-RPC's code for arguments that do not do, as it is found in a body.
_INVALID_PARAMS = b"-32602"


class HttpTransport:
    """A URL as a server. Proxies and certificates are found by the usual variables.

    Unless the server is given credentials of its own, the tokens of somebody's login to it are used (`oauth`).
    """

    remote = True

    def __init__(self, spec: AddMcpServer, redactor: Redactor) -> None:
        self.refused = False
        self.needs_login = False
        self._spec = spec
        self._redactor = redactor
        self._url = spec.url or ""
        self._place = place(self._url)
        # A URL may hold a password or a token, and errors like to quote it.
        self.clean: Clean = lambda text: redactor.text(text.replace(self._url, self._place) if self._url else text)
        self._sse = spec.transport == "sse"
        self._status: int | None = None
        self._on_broken: OnBroken = _ignore
        self._bearer: BearerAuth | None = None

    @asynccontextmanager
    async def connect(self, on_broken: OnBroken) -> AsyncIterator[TransportStreams]:
        from mcp.client.sse import sse_client
        from mcp.client.streamable_http import streamable_http_client

        self._on_broken = on_broken
        if self._sse:
            async with sse_client(self._url, httpx_client_factory=self._client) as streams:
                yield streams
        else:
            async with self._client() as client, streamable_http_client(self._url, http_client=client) as streams:
                yield streams

    def explain(self, error: BaseException | None) -> str:
        if self._bearer is not None and self._bearer.problem:
            return self.clean(self._bearer.problem)
        if self.needs_login:
            return f"needs a login (HTTP status {self._status}): {how_to_log_in(self._spec)}"
        if self.refused:
            return "has forgotten our session"
        if self._status in (_UNAUTHORIZED, _FORBIDDEN):
            return f"needs credentials (HTTP status {self._status}); give them in its `headers`"
        if self._status is not None:
            return f"answered with HTTP status {self._status}; check its URL and its transport"
        if error is None:
            return "ended the connection"
        return f"cannot be reached at {self._place}: {in_short(leaf(error), self.clean)}"

    def _client(
        self,
        headers: Mapping[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        import httpx2

        made = httpx2.AsyncClient(
            headers={**(self._spec.headers or {}), **(headers or {})},
            timeout=httpx2.Timeout(TIMEOUT_SECONDS, read=None),
        )
        if has_credentials(self._spec):
            made.event_hooks = {"response": [self._note_status]}
        else:
            made.auth = self._bearer = self._logged_in()
        return made

    def _logged_in(self) -> BearerAuth:
        from trunkline.tools.mcp.oauth.bearer import BearerAuth
        from trunkline.tools.mcp.oauth.store import LoginStore

        return BearerAuth(self._spec, LoginStore(), self._redactor, self._note_status)

    async def _note_status(self, response: Any) -> None:
        """The SDK swallows most statuses. Some say that nothing will ever come of this connection."""
        posted = response.request.method == "POST"
        in_session = _SESSION_HEADER in response.request.headers
        if response.status_code < _BAD_REQUEST:
            self._status = None
        elif self._wants_login(response):
            self._status = response.status_code
            # With a problem of its own, such as a server that does not answer, it is worth another try.
            self.needs_login = not (self._bearer and self._bearer.problem)
            self.refused = in_session
            self._on_broken()
        elif posted and in_session and await _forgot_session(response):
            self.refused = True
            self._on_broken()
        elif self._sse or (posted and not in_session):
            self._status = response.status_code
            if self._sse and posted:
                # The answer would have come on the other stream; the SDK would wait for it for ever.
                self._on_broken()

    def _wants_login(self, response: Any) -> bool:
        # What a server says about its own messages (GET) or at a goodbye keeps nobody from asking it something.
        if self._bearer is None or not (self._sse or response.request.method == "POST"):
            return False
        challenge = response.headers.get("www-authenticate", "")
        return response.status_code == _UNAUTHORIZED or (
            response.status_code == _FORBIDDEN and "insufficient_scope" in challenge
        )


def has_credentials(spec: AddMcpServer) -> bool:
    """Whether a server is given something that opens it, so that nobody has to log in to it."""
    return "@" in urlsplit(spec.url or "").netloc or any(map(names_a_secret, spec.headers or ()))


def how_to_log_in(spec: AddMcpServer) -> str:
    """What people can do who have not logged in to a server, or whose login is over."""
    name = spec.name
    advice = f"use `/mcp login {name}`, or `{own_command()} mcp login {name}` and then `/mcp reconnect {name}`"
    return advice if spec.oauth else f"{advice}; if it takes a key instead, put it into its `headers`"


async def _forgot_session(response: Any) -> bool:
    """The protocol says 404; many servers say 400, and why."""
    if response.status_code == _BAD_REQUEST:
        body = (await response.aread()).lower()
        # Arguments may have to do with sessions, too; whoever called should hear what is wrong with them.
        return b"session" in body and _INVALID_PARAMS not in body
    return bool(response.status_code == _NOT_FOUND)


def _ignore() -> None:
    """Nobody is there to be told yet."""
