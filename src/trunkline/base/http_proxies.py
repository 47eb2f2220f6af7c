"""The proxy of the environment for connections to addresses that were looked at before (`http_public`).

A proxy that is told a name looks it up by itself, and may find something else than we did. So it is told the address,
and to hand the connection through (`CONNECT`), whether what is spoken on it is HTTP or TLS.

    HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY, in either case
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from trunkline.base.hosts import is_loopback
from trunkline.base.values import Value

if TYPE_CHECKING:
    import httpcore

    #: Connects to a host and a port, within some seconds.
    Connect = Callable[[str, int, float | None], Awaitable[httpcore.AsyncNetworkStream]]

#: Of a proxy's answer: it has nothing to say but yes or no.
_MOST_BYTES = 64 * 1024
_PORTS = {"http": 80, "https": 443}


class Proxy(Value):
    """Somebody who hands connections through."""

    host: str
    port: int
    secure: bool = False
    account: str = ""
    """A name and a password, as they are sent."""

    def __repr__(self) -> str:
        return f"Proxy({self.host}:{self.port})"

    async def connect(
        self, connect: Connect, host: str, port: int, timeout: float | None
    ) -> httpcore.AsyncNetworkStream:
        """A connection to an address, through the proxy.

        Raises:
            OSError: the proxy does not want to.
            httpcore.NetworkError: it cannot be reached.
        """
        stream = await connect(self.host, self.port, timeout)
        try:
            if self.secure:
                import asyncio

                from trunkline.base.http import trusted

                stream = await stream.start_tls(await asyncio.to_thread(trusted), self.host, timeout)
            await self._ask(stream, host, port, timeout)
        except BaseException:
            await stream.aclose()
            raise
        return stream

    async def _ask(self, stream: httpcore.AsyncNetworkStream, host: str, port: int, timeout: float | None) -> None:
        target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
        if self.account:
            lines.append(f"Proxy-Authorization: Basic {self.account}")
        await stream.write("\r\n".join([*lines, "", ""]).encode("ascii"), timeout)
        answer = b""
        while b"\r\n\r\n" not in answer:
            piece = await stream.read(_MOST_BYTES, timeout)
            answer += piece
            if not piece or len(answer) > _MOST_BYTES:
                raise OSError("the proxy ended the connection")
        status = answer.split(b"\r\n", 1)[0].split(b" ", 2)[1:2]
        if not status or not status[0].startswith(b"2"):
            said = status[0][:3].decode("ascii", "replace") if status else "no HTTP"
            raise OSError(f"the proxy does not hand it through: it answers {said}")


def proxy_for(url: str) -> Proxy | None:
    """The proxy that the environment has for an address; None if it is to be reached directly.

    Raises:
        ValueError: a variable holds no address that can be used.
    """
    from urllib.request import getproxies_environment, proxy_bypass

    parts = urlsplit(url)
    host = parts.hostname or ""
    proxies = getproxies_environment()
    found = proxies.get(parts.scheme) or proxies.get("all")
    # What runs on this machine is not behind a proxy, whether or not `NO_PROXY` says so.
    if not found or is_loopback(host) or proxy_bypass(host):
        return None
    proxy = urlsplit(found if "://" in found else f"http://{found}")
    if proxy.scheme not in _PORTS or not proxy.hostname:
        raise ValueError("a proxy variable such as `HTTPS_PROXY` holds no address of an HTTP proxy")
    account = ""
    if proxy.username is not None:
        words = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
        account = b64encode(words.encode()).decode("ascii")
    return Proxy(proxy.hostname, proxy.port or _PORTS[proxy.scheme], proxy.scheme == "https", account)
