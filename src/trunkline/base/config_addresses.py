"""What names and addresses in a service's configuration look like.

Most functions give a value in its one form, so that two can be compared, or None where it is no such thing.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any
from urllib.parse import SplitResult, urlsplit

_MAX_PORT = 65535
_DEFAULT_PORTS = {"http": 80, "https": 443}
_ORIGIN = re.compile(r"(?i)https?://(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?/?", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9._-]+|\[?[0-9A-Fa-f:.]+\]?", re.ASCII)


def listening(value: Any) -> tuple[str, int] | None:
    """The host and the port of `HOST:PORT`."""
    if not isinstance(value, str):
        return None
    host, _, port = value.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    # More digits than that are no port, and may be more than a number may have.
    good = host and port.isascii() and port.isdecimal() and len(port) <= len(str(_MAX_PORT)) and int(port) <= _MAX_PORT
    return (host, int(port)) if good else None


def joined(host: str, port: int) -> str:
    """An address as it is written."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def beside(value: Any, host: str, port: int) -> tuple[str, int] | None:
    """Where a second door of a service is: at an address of its own, or for True at the port after this one.

    The last port, and 0, have none after them: then it is any free one. None: there is no second door.
    """
    if value is True:
        return host, port + 1 if 0 < port < _MAX_PORT else 0
    return listening(value)


def web_address(value: Any) -> str | None:
    """The address of a web server, with what may be behind it."""
    found = _split(value)
    return found.geturl() if found is not None else None


def base_address(value: Any) -> str | None:
    """The address of a web server that paths are put behind: nothing but a path in it, and no slash at its end."""
    found = _split(value)
    if found is None or found.port == 0 or found.query or found.fragment or found.username or found.password:
        return None
    return str(value).rstrip("/")


def origin(value: Any) -> str | None:
    """An origin as browsers send it: no path, no slash at its end, not the port that its scheme has anyway.

    Never `*`, and never `null`.
    """
    found = _split(value) if isinstance(value, str) and _ORIGIN.fullmatch(value) else None
    if found is None:
        return None
    text = str(value).rstrip("/").lower()
    if found.port is None:
        return text
    name = text.rpartition(":")[0]
    return name if found.port == _DEFAULT_PORTS[found.scheme] else f"{name}:{found.port}"


def host(value: Any) -> str | None:
    """The name of a host, without a port."""
    return value.lower() if isinstance(value, str) and _NAME.fullmatch(value) else None


def network(value: Any) -> str | None:
    """An address, or a network such as `10.0.0.0/8`."""
    try:
        return str(ipaddress.ip_network(value, strict=False)) if isinstance(value, str) else None
    except ValueError:
        return None


def _split(value: Any) -> SplitResult | None:
    if not isinstance(value, str) or not value.isprintable() or " " in value:
        return None
    try:
        found = urlsplit(value)
        port_is_good = (found.port or 1) > 0
    except ValueError:
        return None
    return found if port_is_good and found.scheme in ("http", "https") and found.hostname else None
