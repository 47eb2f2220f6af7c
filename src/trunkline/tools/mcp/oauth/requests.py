"""The requests with which somebody logs in: where they may go, and how much of an answer is read.

Where they go is said by the server, and by whoever it names, and neither is trusted: what they name must be reached by
HTTPS. Only for a server on this machine may it be HTTP, on this machine as well.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from trunkline.base.hosts import is_loopback
from trunkline.base.http import BodyTooLong, user_agent, whole
from trunkline.tools.mcp.connection import McpError

if TYPE_CHECKING:
    import httpx2

#: What servers say of themselves has a few thousand bytes.
MOST_BYTES = 1 << 18
#: The longest address, as servers have it.
LONGEST_URL = 8000
#: For each step of a request. Somebody may wait for it.
TIMEOUT_SECONDS = 20.0

#: What a body was once packed with, and how long it was then, is of no interest when it is read.
_OF_THE_BODY = ("content-encoding", "content-length", "transfer-encoding")


class LoginFailed(McpError):
    """Nobody was logged in. The text is the rest of a sentence about the server; it may hold words of strangers."""


def check_address(url: str, server_url: str) -> None:
    """See whether secrets may go to an address that comes up in the login to a server.

    Raises:
        LoginFailed: they must not.
    """
    if len(url) > LONGEST_URL or not url.isprintable():
        raise LoginFailed("names an address that no browser takes")
    if is_safe(url, server_url):
        return
    parts = urlsplit(url)
    raise LoginFailed(f"asks for a login at {parts.scheme}://{parts.hostname or ''}, which is not reached by HTTPS")


def is_safe(url: str, server_url: str) -> bool:
    """Whether what is sent to an address can be read there alone."""
    try:
        parts, server = urlsplit(url), urlsplit(server_url)
        host, own = parts.hostname or "", server.hostname or ""
    except ValueError:
        return False
    if parts.scheme == "https":
        return bool(host) and "@" not in parts.netloc
    return parts.scheme == "http" and is_loopback(host) and is_loopback(own)


@asynccontextmanager
async def login_requests(server_url: str) -> AsyncIterator[LoginRequests]:
    """Within the block, requests can be made."""
    import httpx2

    headers = {"user-agent": user_agent(), "accept": "application/json", "accept-encoding": "identity"}
    async with httpx2.AsyncClient(headers=headers, timeout=TIMEOUT_SECONDS) as client:
        yield LoginRequests(client, server_url)


class LoginRequests:
    """Makes the requests of the login to one server."""

    def __init__(self, client: httpx2.AsyncClient, server_url: str) -> None:
        self._client = client
        self._server_url = server_url

    async def ask(self, request: httpx2.Request, *, head: bool = False) -> httpx2.Response:
        """Send a request; the answer is read. With `head` only its beginning is: what follows may have no end.

        Raises:
            LoginFailed: it must not be sent, or the answer is too long.
            httpx2.HTTPError: it did not get through.
        """
        import httpx2

        check_address(str(request.url), self._server_url)
        for name, value in self._client.headers.items():
            request.headers.setdefault(name, value)
        response = await self._client.send(request, stream=True, auth=None, follow_redirects=False)
        try:
            body = b"" if head else await whole(response.aiter_raw(), MOST_BYTES)
        except BodyTooLong:
            raise LoginFailed(f"sends more than {MOST_BYTES} bytes where a login is described") from None
        finally:
            await response.aclose()
        kept = [(name, value) for name, value in response.headers.multi_items() if name not in _OF_THE_BODY]
        read = httpx2.Response(response.status_code, headers=kept, content=body, request=request)
        # What a redirect leads to is looked at by the SDK, and refused unless it is on the same server.
        read.next_request = response.next_request
        return read
