"""A homeserver's client-server interface, as far as the bridge needs it, by way of `matrix-nio`.

Every call ends in bounded time, and is made once: who calls knows better whether and when to try again. What goes
wrong is a `SendFailed` that says whether the server took it:

    no connection, too many requests, a token that is not accepted       NotNow
    a broken connection, no answer in time, an error of the server's     Unclear
    any other refusal                                                    SendFailed

The token goes in a header, never in an address, and is in no text of ours.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from importlib import import_module
from typing import IO, Any, Literal, NoReturn
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

from trunkline.base import jsontext
from trunkline.base.cutting import cut_between_words
from trunkline.chat.platform import NotNow, SendFailed, TokenRefused, Unclear
from trunkline.core.faults import ConfigError

#: A host that is there accepts a connection within a second or two.
CONNECT_SECONDS = 10.0
#: A server that is there answers most requests in a second; a busy one may take long to spread a message.
ANSWER_SECONDS = 30.0
#: The longest silence in an answer; longer than the server waits for news.
SILENCE_SECONDS = 60.0
#: For a file of the largest size on a slow line.
FILE_SECONDS = 600.0
#: Bytes of an answer that is no file. The first answer to `/sync` in a hundred busy rooms has a few million.
MOST_BYTES = 64 * 1024 * 1024
#: Read and written at once.
CHUNK_BYTES = 64 * 1024
#: How long the connections may take to close.
CLOSE_SECONDS = 5.0

_JSON = "application/json"
_PROXIED = ("http", "https", "all", "no")
_OWN_MACHINE = ("localhost", "127.0.0.1", "::1")


class MatrixRefused(SendFailed):
    """The server's own word for it, such as `M_FORBIDDEN`, is `code`."""

    def __init__(self, message: str, status: int, code: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class Homeserver:
    """The calls. `token` may be set later, by who logs in."""

    def __init__(self, address: str, token: str = "", *, environ: Mapping[str, str] = os.environ) -> None:
        try:
            nio = import_module("nio")
            self._aiohttp = import_module("aiohttp")
            self._socks = import_module("aiohttp_socks")
        except ImportError:
            from trunkline.base.extras import adding

            raise ConfigError("Matrix needs the package `matrix-nio`.", hint=adding("matrix")) from None
        self.address = address
        self.token = token
        self.api = nio.Api
        self._client = nio.AsyncClient(address, ssl=True, proxy=_proxy(address, environ))
        #: Set for good by `close`.
        self.closed = asyncio.Event()

    async def call(self, request: tuple[Any, ...], *, seconds: float | None = None) -> dict[str, Any]:
        """Make a request that `api` described, and give what the server answered.

        Raises:
            SendFailed: or one of its children.
        """
        method, path, *rest = request
        data = rest[0] if rest else None
        return await self._exchange(method, path, data, _JSON, seconds or ANSWER_SECONDS)

    async def upload(self, path: str, mimetype: str) -> str:
        """Store a file; gives its address.

        Raises:
            SendFailed: or one of its children.
            OSError: the file cannot be read.
        """
        method, where = self.api.upload("")
        with _opened(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            answer = await self._exchange(method, where, _chunks(file), mimetype, FILE_SECONDS, length=size)
        ref = answer.get("content_uri")
        if not isinstance(ref, str):
            raise SendFailed("the homeserver did not say where it put the file")
        return ref

    async def download(self, server: str, name: str, path: str, limit: int) -> None:
        """Save a file, of at most `limit` bytes.

        Raises:
            SendFailed: or one of its children.
            OSError: the file cannot be written.
        """
        method, where = self.api.download(server, name, access_token="")
        try:
            async with await self._request(method, where, None, {}, FILE_SECONDS) as got:
                if got.status != 200:
                    _raise(got.status, await self._json(got))
                with _opened(path, "wb") as file:
                    await self._save(got, file, limit)
        except self._lost as error:
            raise self._trouble(error) from None

    async def close(self) -> None:
        """Close the connections."""
        self.closed.set()
        session, self._client.client_session = self._client.client_session, None
        if session is not None:
            try:
                async with asyncio.timeout(CLOSE_SECONDS):
                    await session.close()
            except TimeoutError:
                # They are the system's to close now.
                return

    async def _exchange(
        self, method: str, path: str, data: Any, content_type: str, seconds: float, length: int | None = None
    ) -> dict[str, Any]:
        headers = {"Content-Type": content_type}
        if length is not None:
            headers["Content-Length"] = str(length)
        try:
            async with await self._request(method, path, data, headers, seconds) as got:
                answer = await self._json(got)
        except self._lost as error:
            raise self._trouble(error) from None
        if got.status != 200:
            _raise(got.status, answer)
        if answer is None:
            raise Unclear(f"the answer of `{self.address}` is not JSON")
        return answer

    async def _request(self, method: str, path: str, data: Any, headers: dict[str, str], seconds: float) -> Any:
        # The library would open new connections for a client that was closed.
        if self.closed.is_set():
            raise NotNow("the connection to the homeserver was closed")
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        limits = self._aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_SECONDS, sock_read=SILENCE_SECONDS)
        return await self._client.send(method, _without_token(path), data, headers, None, limits)

    @property
    def _lost(self) -> tuple[type[Exception], ...]:
        return (self._aiohttp.ClientError, TimeoutError, ConnectionError, *self._no_proxy)

    @property
    def _no_proxy(self) -> tuple[type[Exception], ...]:
        return (self._socks.ProxyError, self._socks.ProxyConnectionError, self._socks.ProxyTimeoutError)

    def _trouble(self, error: Exception) -> SendFailed:
        if isinstance(error, self._no_proxy):
            return NotNow(f"the proxy does not lead to `{self.address}`")
        if isinstance(error, self._aiohttp.ClientSSLError):
            return NotNow(f"the certificate of `{self.address}` is missing or not trusted")
        if isinstance(error, self._aiohttp.ClientConnectorError | self._aiohttp.ConnectionTimeoutError):
            return NotNow(f"nothing answers at `{self.address}`")
        if isinstance(error, self._aiohttp.InvalidURL):
            return SendFailed(f"`{self.address}` is not a valid address")
        if isinstance(error, TimeoutError):
            return Unclear(f"`{self.address}` did not answer in time")
        return Unclear(f"the connection to `{self.address}` was lost ({type(error).__name__})")

    async def _json(self, got: Any) -> dict[str, Any] | None:
        """What it says, if it says something that we understand."""
        data = bytearray()
        async for chunk in got.content.iter_chunked(CHUNK_BYTES):
            data += chunk
            if len(data) > MOST_BYTES:
                raise Unclear(f"the answer of `{self.address}` is larger than {MOST_BYTES} bytes")
        try:
            answer = jsontext.loads(bytes(data))
        except ValueError:
            return None
        return answer if isinstance(answer, dict) else None

    async def _save(self, got: Any, file: IO[bytes], limit: int) -> None:
        size = 0
        async for chunk in got.content.iter_chunked(CHUNK_BYTES):
            size += len(chunk)
            if size > limit:
                raise SendFailed(f"the file is larger than {limit} bytes")
            file.write(chunk)


def _raise(status: int, answer: dict[str, Any] | None) -> NoReturn:
    """Say what a refusal means."""
    answer = answer or {}
    code, text = str(answer.get("errcode", "")), cut_between_words(str(answer.get("error", "")), 500)
    said = f"the homeserver said {code or status}{f': {text}' if text else ''}"
    if status == 429 or code == "M_LIMIT_EXCEEDED":
        wait = answer.get("retry_after_ms")
        raise NotNow(said, wait / 1000 if isinstance(wait, int | float) and wait >= 0 else None)
    if status == 401:
        raise TokenRefused(said)
    if status >= 500:
        raise Unclear(said)
    raise MatrixRefused(said, status, code)


def _opened(path: str, mode: Literal["rb", "wb"]) -> IO[bytes]:
    """A file on this machine, read and written in pieces that no disk makes anybody wait for."""
    return open(path, mode)


async def _chunks(file: IO[bytes]) -> AsyncIterator[bytes]:
    while chunk := file.read(CHUNK_BYTES):
        yield chunk


def _without_token(path: str) -> str:
    """A path as the library describes it, without the token that it has a place for."""
    parts = urlsplit(path)
    query = {name: values for name, values in parse_qs(parts.query).items() if name != "access_token"}
    return urlunsplit(parts._replace(query=urlencode(query, doseq=True)))


def _proxy(address: str, environ: Mapping[str, str]) -> str | None:
    """The proxy that the environment names for this address."""
    from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]  # not in the stubs

    proxies = {
        scheme: environ.get(f"{scheme}_proxy") or environ.get(f"{scheme.upper()}_PROXY") or "" for scheme in _PROXIED
    }
    parts = urlsplit(address)
    host = parts.hostname or ""
    # What runs on this machine is not behind a proxy.
    if host in _OWN_MACHINE or proxy_bypass_environment(host, proxies):
        return None
    return proxies.get(parts.scheme) or proxies["all"] or None
