"""The host in an address, however it is written: whoever allows or denies one has to mean the one that is fetched."""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import urlsplit


def on_the_wire(name: str) -> str:
    """A name as it is looked up.

    Raises:
        ValueError: no server can have it.
    """
    return name if ":" in name else name.encode("idna").decode()


def same_host(written: str) -> str:
    """What all ways to write a host come to: `X.org.` is `x.org`, `0x7f.1` is `127.0.0.1`.

    Raises:
        ValueError: no server can have that name.
    """
    name = on_the_wire(written.strip().strip("[]")).lower().rstrip(".")
    if ":" in name:
        return str(ipaddress.ip_address(name))
    try:
        return socket.inet_ntoa(socket.inet_aton(name))
    except OSError:
        return name


def host_in(url: str) -> str:
    """The same of an address that nobody has checked yet, with blanks around it or not; nothing if it has none.

    Raises:
        ValueError: no server can have that name.
    """
    return same_host(urlsplit(url.strip()).hostname or "")
