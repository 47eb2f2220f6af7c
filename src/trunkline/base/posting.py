"""A question over HTTP whose answer is read as it comes: what models are asked with.

There are two ways, and they do the same. Where nothing stands between us and the server it is `base.posting_direct`,
which is there at once. Where the environment names a proxy it is `httpx`, which knows all about proxies, and takes
longer to be imported than everything else that an agent does before its first word.
"""

from __future__ import annotations

import errno
import os
import re
import ssl
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Literal, Protocol

from trunkline.base import http

if TYPE_CHECKING:
    import httpx

#: Nobody listens there, not reached for another reason, reached and no TLS agreed on, not reached in time, silent for
#: too long, kept away by a proxy, nothing that can be sent, and the rest.
Failure = Literal["refused", "unreachable", "insecure", "late", "silent", "proxy", "unsendable", "lost"]

#: A packed answer is unpacked in pieces of this size: a thousandth of it may have been sent.
UNPACKED_BYTES = 256 * 1024

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
#: There proxies are also set where only the library knows to look.
_SYSTEM_PROXIES = ("darwin", "win32")

#: A name may stand for addresses of a kind that this machine has no way to.
_NO_WAY = frozenset((errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.ENETUNREACH, errno.EHOSTUNREACH))
#: How asyncio tells of several addresses that failed in different ways.
_NUMBER = re.compile(r"\[Errno (\d+)\]")


class ConnectionFailed(Exception):
    """A connection was not made, or was lost. The text is the reason, and may be empty."""

    def __init__(self, failure: Failure, place: str, reason: str = "") -> None:
        super().__init__(reason)
        self.failure = failure
        self.place = place
        """The host; and the port, where it is not the usual one and tells which of several servers is meant."""


class Response(Protocol):
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

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, *, connect: float) -> Response:
        """Send a request; gives its answer as soon as that has begun. `connect`: seconds for making a connection.

        Raises:
            ValueError: the address is none.
            ConnectionFailed: there is no answer.
        """

    async def get(self, url: str, headers: Mapping[str, str], *, connect: float) -> Response:
        """Ask for what is at an address. As `post`."""

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

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, *, connect: float) -> Response:
        return await self._sent("POST", url, headers, body, connect)

    async def get(self, url: str, headers: Mapping[str, str], *, connect: float) -> Response:
        return await self._sent("GET", url, headers, None, connect)

    async def _sent(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, connect: float
    ) -> Response:
        import httpx

        timeout = httpx.Timeout(self._client.timeout)
        timeout.connect = connect
        try:
            request = self._client.build_request(method, url, content=body, headers=dict(headers), timeout=timeout)
        except httpx.InvalidURL as error:
            raise ValueError(str(error)) from None
        try:
            return _LibraryAnswer(await self._client.send(request, stream=True))
        except httpx.HTTPError as error:
            raise _failed(error) from error

    async def close(self) -> None:
        await self._client.aclose()


class _LibraryAnswer:
    """A `Response`."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self.status = response.status_code
        self.headers = response.headers
        self._unpack = Unpacking(response.headers, _place(response.request))

    async def pieces(self) -> AsyncIterator[bytes]:
        import httpx

        try:
            async for packed in self._response.aiter_raw():
                for piece in self._unpack(packed):
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
        httpx.ConnectError: why_unmade(error),
        httpx.LocalProtocolError: "unsendable",
    }
    failure: Failure = next((name for kind, name in kinds.items() if isinstance(error, kind)), "lost")
    return ConnectionFailed(failure, _place(error.request), str(error))


def _place(request: httpx.Request) -> str:
    return request.url.netloc.decode("ascii", "replace")


class Unpacking:
    """For those who pack what we asked not to be packed: call it with each piece of the answer."""

    def __init__(self, headers: Mapping[str, str], place: str) -> None:
        self._place = place
        self._packed = headers.get("content-encoding", "").strip().lower() in ("gzip", "x-gzip", "deflate")
        if self._packed:
            import zlib

            # Both kinds, told apart by their first bytes.
            self._unpack = zlib.decompressobj(zlib.MAX_WBITS | 32)

    def __call__(self, data: bytes) -> Iterator[bytes]:
        """What is in a piece, in pieces that are not too large. What comes behind the end is nobody's.

        Raises:
            ConnectionFailed: it is not packed as it claims to be.
        """
        if not self._packed:
            yield data
            return
        import zlib

        while data and not self._unpack.eof:
            try:
                piece = self._unpack.decompress(data, UNPACKED_BYTES)
            except zlib.error as error:
                raise ConnectionFailed("lost", self._place, f"the answer cannot be unpacked: {error}") from None
            data = self._unpack.unconsumed_tail
            if piece:
                yield piece


def why_unmade(error: BaseException) -> Failure:
    """What kept a connection from being made, whoever tells of it."""
    numbers: set[int] = set()
    for cause in _causes(error):
        # An end in the middle of it is a connection that was cut, and may come about again.
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError):
            return "insecure"
        if isinstance(cause, OSError):
            numbers |= {cause.errno} if cause.errno is not None else set(map(int, _NUMBER.findall(str(cause))))
    return "refused" if errno.ECONNREFUSED in numbers and numbers <= _NO_WAY | {errno.ECONNREFUSED} else "unreachable"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):
            for each in error.exceptions:
                yield from _causes(each)
        # The library raises its own "from None", and what it stands for is left as the context.
        error = error.__cause__ or error.__context__
