"""Files over HTTP, as far as they are not there yet.

A download that breaks off leaves what came, and beside it which version of the file that was, if the server says: the
next attempt, now or after a restart, asks for the rest of the same one, and begins anew with another. Rate limits,
overload and broken connections are waited out, in bounded time. What arrives is not trusted: whoever asked checks it.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from trunkline.base import http
from trunkline.models.fetch_index import ACCEPT, IndexSettings
from trunkline.models.http_errors import retry_after

if TYPE_CHECKING:
    import ssl

    import httpx

#: The longest silence of a server in the middle of a file. A good one sends all the time.
READ_SECONDS = 30.0
#: Attempts in a row that may bring nothing new: few where nobody answers, more where somebody asks us to wait.
UNANSWERED_ATTEMPTS = 3
REFUSED_ATTEMPTS = 6
#: Attempts altogether: a server that forgets the offset is no use.
MAX_ATTEMPTS = 100
#: The first wait; each next one is twice as long. Package indexes ask for a few seconds after a burst.
BACKOFF_SECONDS = 1.0
#: No wait is longer, whatever a server asks for: somebody is looking at a progress bar.
MAX_WAIT_SECONDS = 60.0
#: The largest page of an index. The real ones have some megabytes at most.
MAX_PAGE_BYTES = 64 * 1024 * 1024
#: How the file ends that says which version of a file is being fetched.
VERSION = ".version"
#: The longest name of a version that is kept.
MAX_VERSION_CHARS = 1024
R = TypeVar("R")

_SHA256 = re.compile(r'"?([0-9a-f]{64})"?')
#: The number that Git has for a file.
_BLOB = re.compile(r'"?([0-9a-f]{40})"?')

#: Called with the number of bytes that are there.
Arrived = Callable[[int], None]


class RequestFailed(Exception):
    """A request that did not work. It is worth so many `attempts`, with so many `seconds` in between.

    `status`: what the server answered; 0 if that was not the reason.
    """

    def __init__(self, reason: str, *, attempts: int = 1, seconds: float | None = None, status: int = 0) -> None:
        super().__init__(reason)
        self.status = status
        self.attempts = attempts
        self.seconds = seconds


def make_client(places: IndexSettings) -> httpx.AsyncClient:
    """A client that goes the way which pip's settings say, and where they say nothing, the usual variables.

    Raises:
        ValueError: they hold what cannot work; the text names it.
    """
    if not (places.certificates or places.proxy or places.trusted_hosts):
        return http.client(read=READ_SECONDS, redirects=True)
    http.load()
    import httpx

    context = _context(places.certificates) if places.certificates else True
    try:
        # A hash is pinned for everything that we take: a host that nobody vouches for can only waste our time.
        mounts = {
            f"all://{host}": httpx.AsyncHTTPTransport(verify=False, proxy=places.proxy) for host in places.trusted_hosts
        }
        return httpx.AsyncClient(
            headers={"user-agent": http.user_agent(), "accept-encoding": "identity"},
            timeout=httpx.Timeout(http.CONNECT_SECONDS, read=READ_SECONDS),
            verify=context,
            proxy=places.proxy,
            mounts=mounts,
            follow_redirects=True,
        )
    except ImportError:
        raise ValueError("A SOCKS proxy needs a package more: `pip install 'httpx[socks]'`.") from None
    except (httpx.InvalidURL, ValueError) as error:
        raise ValueError(f"pip's setting `proxy` holds no address that can be used: {error}") from None


def _context(certificates: str) -> ssl.SSLContext:
    import ssl

    try:
        if os.path.isdir(certificates):
            return ssl.create_default_context(capath=certificates)
        return ssl.create_default_context(cafile=certificates)
    except OSError as error:
        raise ValueError(f"pip's setting `cert`: cannot read certificates from `{certificates}`: {error}") from None


async def get_page(
    client: httpx.AsyncClient, url: str, headers: Mapping[str, str] = MappingProxyType({"accept": ACCEPT})
) -> tuple[bytes, str, str]:
    """A page, such as one of an index: its body, its type, and the address where it was found in the end.

    Raises:
        Broken: it cannot be had.
    """
    return await _again(lambda: _page(client, url, headers), lambda: 0)


async def _page(client: httpx.AsyncClient, url: str, headers: Mapping[str, str]) -> tuple[bytes, str, str]:
    async with _response(client, url, headers) as response:
        try:
            body = await http.whole(response.aiter_bytes(), MAX_PAGE_BYTES)
        except http.BodyTooLong:
            raise RequestFailed(f"the page is longer than {MAX_PAGE_BYTES} bytes") from None
        return body, response.headers.get("content-type", ""), _found_at(response, url)


def _found_at(response: httpx.Response, asked: str) -> str:
    """Where a page was found; with user and password, when that is the host that we have them for."""
    import httpx

    origin = httpx.URL(asked)
    if (response.url.scheme, response.url.netloc) == (origin.scheme, origin.netloc):
        return str(response.url.copy_with(userinfo=origin.userinfo))
    return str(response.url)


async def offered(client: httpx.AsyncClient, url: str, headers: Mapping[str, str] = {}) -> tuple[int, str]:
    """The size of a file, and its SHA-256 where the server tells it. Of a small file a hub tells the number that Git
    has for it, with 40 digits; of others nothing is told, which is an empty text.

    Raises:
        Broken: it is not offered, or nobody says how long it is.
    """
    return await _again(lambda: _offered(client, url, headers), lambda: 0)


async def _offered(client: httpx.AsyncClient, url: str, headers: Mapping[str, str]) -> tuple[int, str]:
    async with _response(client, url, headers, "HEAD", redirects=False) as response:
        told = response.headers
    if response.is_redirect and "x-linked-size" not in told:
        async with _response(client, url, headers, "HEAD") as response:
            told = response.headers
    # A hub tells size and hash where it sends us on to the file, to an address that may be good for one GET alone.
    size = told.get("x-linked-size") or told.get("content-length", "")
    if not (size.isascii() and size.isdecimal()):
        raise RequestFailed("the server does not say how long the file is")
    linked = told.get("x-linked-etag", "")
    digest = _SHA256.fullmatch(linked) or _BLOB.fullmatch(linked or told.get("etag", ""))
    return int(size), digest[1] if digest else ""


async def download(
    client: httpx.AsyncClient,
    url: str,
    path: str,
    size: int,
    arrived: Arrived,
    headers: Mapping[str, str] = {},
) -> None:
    """Bring the file at `path` to `size` bytes, beginning after those that it has, if they are of the same version.

    Where a server names no versions, what came is gone on with: it is the caller who checks the whole. A key among the
    `headers` goes to the host of the address, and to no other that it sends us on to.

    Raises:
        Broken: it cannot be had. What came is kept, unless it is of another file.
        OSError: it cannot be written.
    """
    await _again(lambda: _continue(client, url, path, size, arrived, headers), lambda: _length(path))


async def _continue(
    client: httpx.AsyncClient, url: str, path: str, size: int, arrived: Arrived, more: Mapping[str, str]
) -> None:
    with _appending(path) as file:
        done = file.tell()
        if done > size:
            done = file.truncate(0)
        if done == size:
            return
        # Written as it is: a compressed transfer would count bytes that are none of the file's.
        begun = _kept_version(path) if done else ""
        headers = {**more, "range": f"bytes={done}-"} if done else {**more}
        if begun:
            headers["if-range"] = begun
        async with _response(client, url, headers) as response:
            version = _version(response)
            if done and not _goes_on(response, done):
                done = file.truncate(0)
            elif done and version != begun:
                file.truncate(0)
                raise RequestFailed("the file has changed in the meantime", attempts=UNANSWERED_ATTEMPTS)
            if not done:
                _keep_version(path, version)
            arrived(done)
            async for chunk in response.aiter_raw():
                done += len(chunk)
                if done > size:
                    # It is another file, and so is what came of it.
                    file.truncate(0)
                    raise RequestFailed(f"the file is longer than {size} bytes")
                file.write(chunk)
                arrived(done)
    if done < size:
        raise RequestFailed(f"the file ended after {done} of {size} bytes", attempts=UNANSWERED_ATTEMPTS)
    _keep_version(path, "")


def _appending(path: str) -> BinaryIO:
    # In the loop, not in a thread: the system takes a chunk in less time than it takes to change threads.
    return open(path, "ab")


def _goes_on(response: httpx.Response, done: int) -> bool:
    """Whether a server sends what comes after that many bytes, and not the whole again."""
    return response.status_code == 206 and response.headers.get("content-range", "").startswith(f"bytes {done}-")


def _version(response: httpx.Response) -> str:
    """What names the version of a file, as `If-Range` takes it; empty if nothing does."""
    tag: str = response.headers.get("etag", "")
    # Two that are equal by a weak one may differ in their bytes.
    found: str = tag if tag and not tag.startswith("W/") else response.headers.get("last-modified", "")
    return found if len(found) <= MAX_VERSION_CHARS else ""


def _kept_version(path: str) -> str:
    try:
        with open(path + VERSION, encoding="latin-1") as file:
            return file.read(MAX_VERSION_CHARS).strip()
    except OSError:
        return ""


def _keep_version(path: str, version: str) -> None:
    if version:
        with open(path + VERSION, "w", encoding="latin-1", errors="replace") as file:
            file.write(version)
    else:
        with suppress(OSError):
            os.remove(path + VERSION)


@asynccontextmanager
async def _response(
    client: httpx.AsyncClient, url: str, headers: Mapping[str, str], method: str = "GET", *, redirects: bool = True
) -> AsyncIterator[httpx.Response]:
    """A response that has a body worth reading. Whatever goes wrong until its end is `RequestFailed`."""
    import httpx

    try:
        async with client.stream(method, url, headers=dict(headers), follow_redirects=redirects) as response:
            if response.status_code not in (200, 206) and not response.is_redirect:
                raise _refused(response)
            yield response
    except httpx.TimeoutException:
        raise RequestFailed("it does not answer", attempts=UNANSWERED_ATTEMPTS) from None
    except httpx.TransportError as error:
        reason = str(error) or type(error).__name__
        raise RequestFailed(f"connection error: {reason}", attempts=UNANSWERED_ATTEMPTS) from None
    except (httpx.InvalidURL, httpx.HTTPError) as error:
        raise RequestFailed(str(error)) from None


def _refused(response: httpx.Response) -> RequestFailed:
    status = response.status_code
    passing = status in (408, 425, 429) or status >= 500
    words = {404: "not there", 401: "user or password is missing or wrong", 403: "not allowed"}.get(status, "")
    return RequestFailed(
        f"HTTP status {status}{', ' * bool(words)}{words}",
        attempts=REFUSED_ATTEMPTS if passing else 1,
        seconds=retry_after(response.headers),
        status=status,
    )


async def _again(attempt: Callable[[], Awaitable[R]], length: Callable[[], int]) -> R:
    """Make attempts until one works or they bring nothing new."""
    barren = 0
    for _ in range(MAX_ATTEMPTS):
        before = length()
        try:
            return await attempt()
        except RequestFailed as error:
            barren = 0 if length() > before else barren + 1
            if error.attempts == 1 or barren >= error.attempts:
                raise
            await asyncio.sleep(_wait(barren, error.seconds))
    raise RequestFailed(f"it broke off {MAX_ATTEMPTS} times")


def _wait(barren: int, asked: float | None) -> float:
    """Seconds until the next attempt; at random up to a quarter more, lest many come back at once."""
    seconds = BACKOFF_SECONDS * 2 ** max(0, barren - 1) if asked is None else asked
    return min(seconds * random.uniform(1, 1.25), MAX_WAIT_SECONDS)  # noqa: S311  # nothing secret


def _length(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
