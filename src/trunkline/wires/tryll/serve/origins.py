"""Whose pages may open a WebSocket: every page that a browser shows can try, also with a server on loopback.

What is no browser sends no `Origin`, and comes in as over TCP. A browser's page is let in if its origin was named, if
it is one of this machine, or if it comes from the server's own name. A name that its owner lets lead here (DNS
rebinding) is none of the server's: then the `Host` that the browser sends is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from trunkline.base import config_addresses
from trunkline.base.host_names import host_in
from trunkline.base.hosts import REFUSED, Hosts, is_loopback
from trunkline.base.printable import printable_line

#: How much of an origin is repeated to whoever comes from there.
_SHOWN_CHARS = 100


class AllowedOrigins:
    """Those of one server, which listens at `host`, and those that somebody named."""

    def __init__(self, host: str, named: Iterable[str] = ()) -> None:
        self._named = frozenset(filter(None, map(config_addresses.origin, named)))
        self._hosts = Hosts.of(host)

    def problem(self, origins: list[str], hosts: list[str]) -> str | None:
        """What is wrong with a request that has these `Origin` and `Host` headers; None if it is let in."""
        if not origins:
            return None
        if len(origins) == 1 and config_addresses.origin(origins[0]) in self._named:
            return None
        if len(hosts) != 1 or not self._hosts.allow(hosts[0]):
            return f"{REFUSED}. {_advice(origins[0])}"
        if len(origins) != 1 or not _is_ours(origins[0], hosts[0]):
            return f"Pages of `{_shown(origins[0])}` may not connect. {_advice(origins[0])}"
        return None


def _is_ours(origin: str, host: str) -> bool:
    """Whether an origin is of this machine, or of the host that was called."""
    try:
        theirs, ours = host_in(origin), host_in(f"//{host}")
    except ValueError:
        return False
    return bool(theirs) and bool(urlsplit(origin).scheme) and (theirs == ours or is_loopback(theirs))


def _advice(origin: str) -> str:
    found = config_addresses.origin(origin)
    return f"`--ws-origin {found}` lets them in." if found is not None else "`--ws-origin` names whose may."


def _shown(origin: str) -> str:
    return printable_line(origin[:_SHOWN_CHARS])
