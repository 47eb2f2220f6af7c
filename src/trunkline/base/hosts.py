"""By which names a server may be called: a page of anybody's can make a browser call it by a name of its own.

A name that its owner lets lead here makes their page one of ours to the browser (DNS rebinding). What it cannot change
is the `Host` that the browser sends. So a server knows its names, and answers to no others.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import Any

#: What a request by a foreign name gets.
REFUSED = "Host not allowed"

#: A name or an address, and perhaps a port. Nothing else may stand there: some of it is repeated in other headers.
_HOST = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?", re.ASCII)


class Hosts:
    """The names of one server: those of this machine for itself, and those that somebody listed.

    Args:
        names: more of them, without ports.
        addresses: whether every address counts, as it must where a server listens on all of a machine's: no page can
            make an address lead elsewhere.
    """

    def __init__(self, names: Iterable[str] = (), *, addresses: bool = False) -> None:
        self._names = frozenset(_plain(name) for name in names)
        self._addresses = addresses
        self._known: bytes | None = None
        """The last header that was fine: most requests have the same."""

    @classmethod
    def of(cls, listen: str, names: Iterable[str] = ()) -> Hosts:
        """Those of a server that listens there."""
        return cls((listen, *names), addresses=_is_everywhere(listen))

    def allow(self, host: str) -> bool:
        """Whether a `Host` header, with or without a port, is one of the names."""
        found = _HOST.fullmatch(host)
        if found is None:
            return False
        name = _plain(found[1])
        if name in self._names or name == "localhost":
            return True
        address = _address(name)
        return address is not None and (self._addresses or address.is_loopback)

    def allow_scope(self, scope: Any) -> bool:
        """The same for an ASGI request. One without a `Host`, or with several, has none of the names."""
        found = [value for name, value in scope["headers"] if name == b"host"]
        if len(found) != 1 or (found[0] != self._known and not self.allow(found[0].decode("latin-1"))):
            return False
        self._known = found[0]
        return True


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens there."""
    address = _address(host)
    return host == "localhost" if address is None else address.is_loopback


def _plain(name: str) -> str:
    return name.removeprefix("[").removesuffix("]").removesuffix(".").lower()


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def _is_everywhere(listen: str) -> bool:
    address = _address(listen)
    return address is not None and address.is_unspecified
