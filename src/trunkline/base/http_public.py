"""Fetch from, or send to, an address that somebody else names, and of which nobody knows where it leads.

What such an address must not do is lead to what only this machine can reach: its own services, its network's, the
metadata of its cloud. So a name is looked up once, what it stands for is looked at, and the connection goes to just
that address; the same for each redirect. A proxy would look it up anew: none is used. Nothing that identifies anybody
goes along.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urljoin, urlsplit

from trunkline.base.http import BodyTooLong, load, trusted, user_agent, whole

if TYPE_CHECKING:
    import httpcore

#: How long one address of a name may take to be connected to, if there are others: a dead one must not eat the time of
#: the next. Somebody who is there answers within a second or two.
ADDRESS_SECONDS = 3.0
#: More are a circle, or a chase.
MOST_REDIRECTS = 5
#: The longest address, as servers have it.
LONGEST_URL = 8000

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


class NotFetched(Exception):
    """It was not fetched, and why: for people."""


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
    return found.is_global and not found.is_multicast and found not in _PROTOCOLS


async def fetch(url: str, *, most: int, seconds: float, private: bool = False) -> bytes:
    """What lies at an address that begins with `http:` or `https:`.

    Args:
        most: bytes that it may have.
        seconds: how long all of it may take, redirects included.
        private: whether it may lie on this machine or its network.

    Raises:
        NotFetched: it cannot be had, or may not.
    """
    async with _within(seconds, most):
        for _ in range(MOST_REDIRECTS + 1):
            found = await _get(checked(url), most, private)
            if isinstance(found, bytes):
                return found
            url = urljoin(url, found)
    raise NotFetched(f"it leads on to others more than {MOST_REDIRECTS} times")


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
async def _within(seconds: float, most: int) -> AsyncIterator[None]:
    """Whatever goes wrong, in words for people."""
    load()
    import httpcore

    try:
        async with asyncio.timeout(seconds):
            yield
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
    host = parts.hostname if ":" in parts.hostname else parts.hostname.encode("idna").decode()
    if not _HOST.fullmatch(host):
        raise NotFetched("the name of its server has characters that no name has")
    shown = f"[{host}]" if ":" in host else host
    port = f":{parts.port}" if parts.port is not None else ""
    target = quote(parts.path or "/", safe=_PLAIN) + (f"?{quote(parts.query, safe=_PLAIN)}" if parts.query else "")
    return f"{parts.scheme}://{shown}{port}{target}"


def host(url: str) -> str:
    """The name or address in one that is `checked`."""
    return urlsplit(url).hostname or ""


async def _get(url: str, most: int, private: bool) -> bytes | str:
    """What lies there, or where it leads on to."""
    async with _asked(url, private) as response:
        headers = {name.lower(): value.decode("latin-1") for name, value in response.headers}
        if response.status in _REDIRECTS and b"location" in headers:
            return headers[b"location"]
        if response.status != _OK:
            raise NotFetched(f"the server answers {response.status}")
        if headers.get(b"content-encoding", "identity").lower() != "identity":
            raise NotFetched("the server packs it, although it was asked not to")
        length = headers.get(b"content-length", "")
        if length.isdecimal() and int(length) > most:
            raise BodyTooLong
        return await whole(response.aiter_stream(), most)


@asynccontextmanager
async def _asked(
    url: str, private: bool, more: Mapping[str, str] | None = None, body: bytes | None = None
) -> AsyncIterator[httpcore.Response]:
    """The answer to a request; with a body it is a `POST`."""
    import httpcore

    # Beside the event loop, which serves others meanwhile.
    context = await asyncio.to_thread(trusted) if url.startswith("https:") else None
    headers = [("user-agent", user_agent()), ("accept", "*/*"), ("accept-encoding", "identity"), *(more or {}).items()]
    pool = httpcore.AsyncConnectionPool(ssl_context=context, network_backend=_backend(private))
    method = "GET" if body is None else "POST"
    async with pool, pool.stream(method, url, headers=headers, content=body) as response:
        yield response


def _backend(private: bool) -> httpcore.AsyncNetworkBackend:
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
            addresses = await _addresses(host, port, private)
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
