"""A server that is reached by HTTP: the older transport with its stream of events (`sse`), or streamable HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from trunkline.base.redact import Clean
from trunkline.core.agent import AddMcpServer
from trunkline.tools.mcp.transport import OnBroken, in_short, leaf

if TYPE_CHECKING:
    import httpx2
    from mcp.client._transport import TransportStreams

#: For connecting and sending. Reading has no limit: a tool may take as long as it needs, and can be cancelled.
TIMEOUT_SECONDS = 30.0

_SESSION_HEADER = "mcp-session-id"
_BAD_REQUEST, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND = 400, 401, 403, 404
#: JSON-RPC's code for arguments that do not do, as it is found in a body.
_INVALID_PARAMS = b"-32602"


class HttpTransport:
    """A URL as a server. Proxies and certificates are found by the usual variables."""

    remote = True

    def __init__(self, spec: AddMcpServer, clean: Clean) -> None:
        self.refused = False
        self._url = spec.url or ""
        # A URL may hold a password or a token, and errors like to quote it.
        self.clean: Clean = lambda text: clean(text.replace(self._url, self._place) if self._url else text)
        self._headers = dict(spec.headers or {})
        self._sse = spec.transport == "sse"
        self._status: int | None = None
        self._on_broken: OnBroken = _ignore

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
        if self.refused:
            return "has forgotten our session"
        if self._status in (_UNAUTHORIZED, _FORBIDDEN):
            return f"needs credentials (HTTP status {self._status}); give them in its `headers`"
        if self._status is not None:
            return f"answered with HTTP status {self._status}; check its URL and its transport"
        if error is None:
            return "ended the connection"
        return f"cannot be reached at {self._place}: {in_short(leaf(error), self.clean)}"

    @property
    def _place(self) -> str:
        parts = urlsplit(self._url)
        return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")

    def _client(
        self,
        headers: Mapping[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        import httpx2

        return httpx2.AsyncClient(
            headers={**self._headers, **(headers or {})},
            timeout=httpx2.Timeout(TIMEOUT_SECONDS, read=None),
            auth=auth,
            event_hooks={"response": [self._note_status]},
        )

    async def _note_status(self, response: Any) -> None:
        """The SDK swallows most statuses. Some say that nothing will ever come of this connection."""
        posted = response.request.method == "POST"
        in_session = _SESSION_HEADER in response.request.headers
        if response.status_code < _BAD_REQUEST:
            self._status = None
        elif posted and in_session and await _forgot_session(response):
            self.refused = True
            self._on_broken()
        elif self._sse or (posted and not in_session):
            self._status = response.status_code
            if self._sse and posted:
                # The answer would have come on the other stream; the SDK would wait for it for ever.
                self._on_broken()


async def _forgot_session(response: Any) -> bool:
    """The protocol says 404; many servers say 400, and why."""
    if response.status_code == _BAD_REQUEST:
        body = (await response.aread()).lower()
        # Arguments may have to do with sessions, too; whoever called should hear what is wrong with them.
        return b"session" in body and _INVALID_PARAMS not in body
    return bool(response.status_code == _NOT_FOUND)


def _ignore() -> None:
    """Nobody is there to be told yet."""
