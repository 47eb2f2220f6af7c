"""Fetch from, or send to, an address that somebody else names, and of which nobody knows where it leads.

What such an address must not do is lead to what only this machine can reach: its own services, its network's, the
metadata of its cloud. So a name is looked up once, what it stands for is looked at, and the connection goes to just
that address; the same for each redirect. A proxy would look it up anew: none is used, or it is told the address that
was looked at (`http_proxies`). Nothing that identifies anybody goes along.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urljoin, urlsplit

from trunkline.base.host_names import on_the_wire
from trunkline.base.http import BodyTooLong, load, trusted, user_agent, whole
from trunkline.base.http_proxies import Proxy, proxy_for
from trunkline.base.values import Value

if TYPE_CHECKING:
    import httpcore

#: How long one address of a name may take to be connected to, if there are others: a dead one must not eat the time of
#: the next. Somebody who is there answers within a second or two.
ADDRESS_SECONDS = 3.0
#: How long it may take to leave a server that was not read to its end.
CLOSE_SECONDS = 1.0
#: More are a circle, or a chase.
MOST_REDIRECTS = 5
#: The longest address, as servers have it.
LONGEST_URL = 8000

T = TypeVar("T")

_REDIRECTS = (301, 302, 303, 307, 308)
_OK = 200
#: A name, or an address of either kind with what comes behind its `%`.
_HOST = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+(%[\w.-]+)?", re.IGNORECASE | re.ASCII)
#: What may stand in a target as it is; the rest is written as bytes with `%`.
_PLAIN = "%/:?#[]@!$&'()*+,;=~-._"

#: IPv6 that stands for IPv4: translated by a network.
_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
#: All of IPv6 that is given out to the world.
_UNICAST = ipaddress.IPv6Network("2000::/3")
#: Given out to nobody, although the library calls parts of it global.
_PROTOCOLS = ipaddress.IPv4Network("192.0.0.0/24")
#: One of the world's that nobody in the world has: to a machine in Azure, it is the host which that runs on.
_AZURES_HOST = ipaddress.IPv4Address("168.63.129.16")


class NotFetched(Exception):
    """It was not fetched, and why: for people."""


class LeadsElsewhere(NotFetched):
    """The answer was another address, on a host that nobody has agreed to. `url` is that."""

    def __init__(self, url: str) -> None:
        super().__init__(f"it leads on to another host: {url}")
        self.url = url


class WebAnswer(Value):
    """What an address answered."""

    url: str
    """The last one, where it led on to others."""
    status: int
    headers: Mapping[str, str]
    """By their names in small letters."""
    data: bytes
    """What was read of it."""
    size: int
    """How many bytes there are, as far as anybody knows."""
    cut: bool = False
    """Whether there is more than was read."""
    late: bool = False
    """Whether that is because there was no more time."""


def is_public(address: str) -> bool:
    """Whether an address is one of the world's, and not of this machine, its networks, or of a protocol."""
    found = ipaddress.ip_address(address)
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour
        if inner is None and found in _TRANSLATED:
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        if inner is None:
            return found in _UNICAST and found.is_global
        found = inner
    return found.is_global and not found.is_multicast and found not in _PROTOCOLS and found != _AZURES_HOST


async def fetch(url: str, *, most: int, seconds: float, private: bool = False) -> bytes:
    """What lies at an address that begins with `http:` or `https:`.

    Args:
        most: bytes that it may have.
        seconds: how long all of it may take, redirects included.
        private: whether it may lie on this machine or its network.

    Raises:
        NotFetched: it cannot be had, or may not.
    """

    async def read(url: str, response: httpcore.Response, headers: Mapping[str, str]) -> bytes:
        if response.status != _OK:
            raise NotFetched(f"the server answers {response.status}")
        if _packing(headers):
            raise NotFetched("the server packs it, although it was asked not to")
        if (_length(headers) or 0) > most:
            raise BodyTooLong
        return await whole(response.aiter_stream(), most)

    async with _within(seconds, most):
        return await _followed(url, read, private)


async def look(
    url: str,
    *,
    most: int,
    seconds: float,
    private: bool = False,
    wants: Callable[[str], bool] = lambda kind: True,
    may_follow: Callable[[str], bool] = lambda url: True,
) -> WebAnswer:
    """What an address answers, whatever that is, for somebody who has agreed to its host: others are not asked.

    Proxies of the environment are used.

    Args:
        most: bytes that are read of it.
        seconds: how long all of it may take, redirects included. What has come by then is what is given.
        private: whether it may lie on this machine or its network.
        wants: whether what has this `Content-Type` is worth reading, if its size is known anyway.
        may_follow: whether an address of the same host to which it leads on is fetched, too.

    Raises:
        LeadsElsewhere: it is at another host, not any more to be had by `https:`, or where it may not be followed.
        NotFetched: it cannot be had, or may not.
    """
    begun = url

    async def read(url: str, response: httpcore.Response, headers: Mapping[str, str]) -> WebAnswer:
        length, packing = _length(headers), _packing(headers)
        if length is not None and not packing and not wants(headers.get("content-type", "")):
            return WebAnswer(url, response.status, headers, b"", length)
        until = limit.when()
        # What has come by then is worth having.
        limit.reschedule(until + CLOSE_SECONDS if until is not None else None)
        data, cut, late = await _beginning(response.aiter_stream(), most, until)
        if packing:
            data, more = _unpacked(data, packing, most)
            cut, length = cut or more, None
        return WebAnswer(url, response.status, headers, data, max(length or 0, len(data)), cut, late)

    def may_lead_to(url: str) -> None:
        if not _is_same_place(begun, url) or not may_follow(url):
            raise LeadsElsewhere(url)

    async with _within(seconds, most) as limit:
        return await _followed(url, read, private, may_lead_to, proxied=True)


async def post(url: str, headers: Mapping[str, str], body: bytes, *, seconds: float, private: bool = False) -> int:
    """Send something to an address, and give the status of the answer. Nothing else of that is read.

    Redirects are not followed: what is sent was meant for this address.

    Args:
        seconds: how long it may take until the answer begins.
        private: whether it may lie on this machine or its network.

    Raises:
        NotFetched: it could not be sent, or may not.
    """
    async with _within(seconds, 0), _asked(checked(url), private, headers, body) as response:
        return int(response.status)


@asynccontextmanager
async def _within(seconds: float, most: int) -> AsyncIterator[asyncio.Timeout]:
    """Whatever goes wrong, in words for people. Gives the time limit."""
    load()
    import httpcore

    try:
        async with asyncio.timeout(seconds) as limit:
            yield limit
    except TimeoutError:
        raise NotFetched(f"it took longer than {seconds:g} s") from None
    except BodyTooLong:
        raise NotFetched(f"it has more than {most} bytes") from None
    except httpcore.RemoteProtocolError as error:
        # What follows the colon are the server's own bytes.
        said = str(error).partition(":")[0] or "no HTTP"
        raise NotFetched(f"the server answers nonsense ({said})") from None
    except (
        httpcore.NetworkError,
        httpcore.ProtocolError,
        httpcore.TimeoutException,
        httpcore.UnsupportedProtocol,
        OSError,
    ) as error:
        said = str(error) or type(error).__name__
        raise NotFetched(f"the server cannot be reached, or answers nonsense ({said})") from None
    except ValueError as error:
        raise NotFetched(f"it is not an address that can be fetched ({error})") from None


def checked(url: str) -> str:
    """The address as it goes over the wire.

    Raises:
        NotFetched: there can be nothing to fetch.
        ValueError: the same, in the words of whoever found out.
    """
    # (The parser drops line breaks without a word.)
    if not url.isprintable():
        raise NotFetched("its address has control characters or line breaks in it")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise NotFetched("only `http:` and `https:` are fetched")
    if parts.username is not None or parts.password is not None:
        raise NotFetched("it holds a name or a password, which go nowhere from here")
    if len(url) > LONGEST_URL:
        raise NotFetched(f"its address has more than {LONGEST_URL} characters")
    host = on_the_wire(parts.hostname)
    if not _HOST.fullmatch(host):
        raise NotFetched("the name of its server has characters that no name has")
    shown = f"[{host}]" if ":" in host else host
    port = f":{parts.port}" if parts.port is not None else ""
    target = quote(parts.path or "/", safe=_PLAIN) + (f"?{quote(parts.query, safe=_PLAIN)}" if parts.query else "")
    return f"{parts.scheme}://{shown}{port}{target}"


def host(url: str) -> str:
    """The name or address in one that is `checked`."""
    return urlsplit(url).hostname or ""


async def _followed(
    url: str,
    read: Callable[[str, httpcore.Response, Mapping[str, str]], Awaitable[T]],
    private: bool,
    may_lead_to: Callable[[str], None] = lambda url: None,
    *,
    proxied: bool = False,
) -> T:
    """What is read where an address leads, in the end."""
    for _ in range(MOST_REDIRECTS + 1):
        url = checked(url)
        async with _asked(url, private, proxied=proxied) as response:
            headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
            if response.status not in _REDIRECTS or "location" not in headers:
                return await read(url, response, headers)
        url = urljoin(url, headers["location"])
        may_lead_to(checked(url))
    raise NotFetched(f"it leads on to others more than {MOST_REDIRECTS} times")


def _is_same_place(begun: str, url: str) -> bool:
    """Whether what was agreed to for one address is so for another: its host, and that nobody reads along."""
    before, now = urlsplit(begun.lower()), urlsplit(url.lower())
    hosts = [(parts.hostname or "").removeprefix("www.") for parts in (before, now)]
    return hosts[0] == hosts[1] and not (before.scheme == "https" and now.scheme == "http")


def _packing(headers: Mapping[str, str]) -> str:
    """How it is packed; nothing if it is not."""
    return headers.get("content-encoding", "").lower().strip().removeprefix("identity")


def _length(headers: Mapping[str, str]) -> int | None:
    length = headers.get("content-length", "")
    return int(length) if length.isascii() and length.isdecimal() else None


async def _beginning(pieces: AsyncIterator[bytes], most: int, until: float | None) -> tuple[bytes, bool, bool]:
    """As many bytes as may be, whether there are more, and whether that is because the time was over.

    Raises:
        TimeoutError: it was over before there were any.
    """
    data = bytearray()
    try:
        async with asyncio.timeout_at(until):
            async for piece in pieces:
                data += piece
                if len(data) > most:
                    return bytes(data[:most]), True, False
    except TimeoutError:
        if not data:
            raise
        return bytes(data), True, True
    return bytes(data), False, False


def _unpacked(data: bytes, packing: str, most: int) -> tuple[bytes, bool]:
    """What was packed although it was asked not to, as some servers do: no more than `most` bytes of it."""
    import zlib

    if packing not in ("gzip", "x-gzip", "deflate"):
        raise NotFetched(f"the server packs it as `{packing[:20]}`, although it was asked not to")
    # 32: with the head of either kind.
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 32)
    try:
        found = unpacking.decompress(data, most + 1)
    except zlib.error:
        raise NotFetched("the server says that it packs it, and does not") from None
    return found[:most], len(found) > most


@asynccontextmanager
async def _asked(
    url: str,
    private: bool,
    more: Mapping[str, str] | None = None,
    body: bytes | None = None,
    *,
    proxied: bool = False,
) -> AsyncIterator[httpcore.Response]:
    """The answer to a request; with a body it is a `POST`."""
    import httpcore

    # Beside the event loop, which serves others meanwhile.
    context = await asyncio.to_thread(trusted) if url.startswith("https:") else None
    headers = [("user-agent", user_agent()), ("accept", "*/*"), ("accept-encoding", "identity"), *(more or {}).items()]
    proxy = proxy_for(url) if proxied else None
    pool = httpcore.AsyncConnectionPool(ssl_context=context, network_backend=_backend(private, proxy))
    method = "GET" if body is None else "POST"
    async with pool, pool.stream(method, url, headers=headers, content=body) as response:
        yield response


def _backend(private: bool, proxy: Proxy | None = None) -> httpcore.AsyncNetworkBackend:
    import httpcore

    class PublicBackend(httpcore.AnyIOBackend):
        """Connects to addresses that may be, and to no names."""

        async def connect_tcp(
            self,
            host: str,
            port: int,
            timeout: float | None = None,
            local_address: str | None = None,
            socket_options: Any = None,
        ) -> httpcore.AsyncNetworkStream:
            error: Exception | None = None
            if proxy is not None and private:
                # Nothing is kept from it: the proxy may know names that nobody here does.
                return await proxy.connect(super().connect_tcp, host, port, timeout)
            addresses = await _addresses(host, port, private)
            if proxy is not None and addresses:
                return await proxy.connect(super().connect_tcp, addresses[0], port, timeout)
            for address in addresses:
                # The last one has all the time that is left, which whoever asked has limited.
                seconds = timeout if address == addresses[-1] else ADDRESS_SECONDS
                try:
                    return await super().connect_tcp(address, port, seconds, local_address, socket_options)
                except (httpcore.NetworkError, httpcore.ConnectTimeout) as failed:
                    error = failed
            raise error or httpcore.ConnectError("the name does not resolve")

    return PublicBackend()


async def _addresses(host: str, port: int, private: bool) -> list[str]:
    """What a name stands for, as far as it may be connected to.

    Raises:
        NotFetched: nothing of it may be.
        OSError: it stands for nothing.
    """
    found = dict.fromkeys(str(each[4][0]) for each in await _looked_up(host, port))
    allowed = [address for address in found if private or is_public(address)]
    if found and not allowed:
        raise NotFetched(f"`{host}` is an address of this machine or of its network")
    return allowed


async def _looked_up(host: str, port: int) -> list[Any]:
    """What the system knows of a name. In a thread that nobody waits for at the end: a resolver may not answer."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[list[Any]] = loop.create_future()

    def settle(found: list[Any] | OSError) -> None:
        if done.done():
            return
        if isinstance(found, OSError):
            done.set_exception(found)
        else:
            done.set_result(found)

    def look_up() -> None:
        found: list[Any] | OSError
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            found = error
        except UnicodeError as error:
            found = OSError(str(error))
        try:
            loop.call_soon_threadsafe(settle, found)
        except RuntimeError:
            # The loop was closed meanwhile: nobody is left to be told.
            return

    threading.Thread(target=look_up, name="look up a host", daemon=True).start()
    return await done
