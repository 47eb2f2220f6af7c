"""Who is at the other end of a connection, and by which name they called."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from trunkline.base import asgi_answers
from trunkline.base.hosts import REFUSED, Hosts

#: One household or one machine in the sixth version of the protocol: it chooses the other 64 bits as it likes.
_HOME_BITS = 64
#: Entries of `X-Forwarded-For` that are looked at. No chain of proxies is as long.
_MOST_FORWARDED = 20

#: Some proxies write the port, too.
_WITH_PORT = re.compile(r"\[([^\]]+)\](?::[0-9]+)?|([0-9.]+):[0-9]+", re.ASCII)

_HINT = "Its operator can add a name with `--allow-host`."


class OwnNames:
    """Answers only those who call the network by a name of its own. It is asked before all that does anything."""

    def __init__(self, app: ASGIApp, *, hosts: Hosts) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._hosts.allow_scope(scope):
            await self._app(scope, receive, send)
        else:
            await asgi_answers.error(403, f"{REFUSED}: this network is not known by that name. {_HINT}")(
                scope, receive, send
            )


class Clients:
    """Tells clients apart by their addresses.

    Args:
        proxies: addresses and networks of proxies. What they say about whom they speak for is believed, and nobody
            else's word for it.
    """

    def __init__(self, proxies: Iterable[str] = ()) -> None:
        self._proxies = [ipaddress.ip_network(proxy, strict=False) for proxy in proxies]

    def name(self, request: Request) -> str:
        """What all requests of one client have in common."""
        address = _address(request.client.host if request.client else "")
        forwarded = ",".join(request.headers.getlist("x-forwarded-for")).split(",")
        # Each proxy adds at the end whom it heard. What stands before the first stranger, the stranger wrote; and so,
        # perhaps, did whoever a proxy names by anything else than an address.
        for said in forwarded[: -_MOST_FORWARDED - 1 : -1]:
            found = _address(_without_port(said.strip()))
            if found is None or address is None or not self._is_proxy(address):
                break
            address = found
        if isinstance(address, ipaddress.IPv6Address):
            return str(ipaddress.ip_network((int(address), _HOME_BITS), strict=False))
        return str(address)

    def _is_proxy(self, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
        return any(address in network for network in self._proxies)


def _without_port(said: str) -> str:
    found = _WITH_PORT.fullmatch(said)
    return said if found is None else found[1] or found[2]


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
