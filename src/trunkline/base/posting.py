"""A question over HTTP whose answer is read as it comes: what models are asked with.

There are two ways, and they do the same. Where nothing stands between us and the server it is `base.posting_direct`,
which is there at once. Where the environment names a proxy it is `httpx`, which knows all about proxies, and takes
longer to be imported than everything else that an agent does before its first word.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Literal, Protocol

from trunkline.base import http

if TYPE_CHECKING:
    import httpx

#: Not reached, not reached in time, silent for too long, kept away by a proxy, nothing that can be sent, and the rest.
Failure = Literal["unreachable", "late", "silent", "proxy", "unsendable", "lost"]

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
#: There proxies are also set where only the library knows to look.
_SYSTEM_PROXIES = ("darwin", "win32")


class ConnectionFailed(Exception):
    """A connection was not made, or was lost. The text is the reason, and may be empty."""

    def __init__(self, failure: Failure, place: str, reason: str = "") -> None:
        super().__init__(reason)
        self.failure = failure
        self.place = place
        """The host; and the port, where it is not the usual one and tells which of several servers is meant."""


class Answer(Protocol):
    """The beginning of an answer is here; the rest comes in pieces."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]:
        """By their names in lower case."""

    def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes in. Raises `ConnectionFailed`. To be called once."""

    async def close(self) -> None:
        """Needed unless the last piece has come: there is no interest in the others. Idempotent."""


class Poster(Protocol):
    """Asks servers, and keeps its connections to them for the next question."""

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, *, connect: float) -> Answer:
        """Send a request; gives its answer as soon as that has begun. `connect`: seconds for making a connection.

        Raises:
            ValueError: the address is none.
            ConnectionFailed: there is no answer.
        """

    async def close(self) -> None:
        """Close all connections."""


def poster(*, secure: bool) -> Poster:
    """One for the event loop that will run. `secure`: whether addresses begin with `https`. Takes a while.

    Raises:
        ValueError: a variable for proxies or certificates holds what cannot work; the text names it.
    """
    if sys.platform in _SYSTEM_PROXIES or any(os.environ.get(n) or os.environ.get(n.lower()) for n in _PROXIES):
        return _ByLibrary(http.client(secure=secure))
    from trunkline.base.posting_direct import Direct

    return Direct(http.trusted() if secure else None)


class _ByLibrary:
    """A `Poster`."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, *, connect: float) -> Answer:
        import httpx

        timeout = httpx.Timeout(self._client.timeout)
        timeout.connect = connect
        try:
            request = self._client.build_request("POST", url, content=body, headers=dict(headers), timeout=timeout)
        except httpx.InvalidURL as error:
            raise ValueError(str(error)) from None
        try:
            return _LibraryAnswer(await self._client.send(request, stream=True))
        except httpx.HTTPError as error:
            raise _failed(error) from error

    async def close(self) -> None:
        await self._client.aclose()


class _LibraryAnswer:
    """An `Answer`."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self.status = response.status_code
        self.headers = response.headers

    async def pieces(self) -> AsyncIterator[bytes]:
        import httpx

        try:
            async for piece in self._response.aiter_bytes():
                yield piece
        except httpx.HTTPError as error:
            raise _failed(error) from error

    async def close(self) -> None:
        await self._response.aclose()


def _failed(error: httpx.HTTPError) -> ConnectionFailed:
    import httpx

    kinds: dict[type[httpx.HTTPError], Failure] = {
        httpx.ConnectTimeout: "late",
        httpx.ReadTimeout: "silent",
        httpx.ProxyError: "proxy",
        httpx.ConnectError: "unreachable",
        httpx.LocalProtocolError: "unsendable",
    }
    failure: Failure = next((name for kind, name in kinds.items() if isinstance(error, kind)), "lost")
    return ConnectionFailed(failure, error.request.url.netloc.decode("ascii", "replace"), str(error))
