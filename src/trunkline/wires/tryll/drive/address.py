"""Where a Tryll server is: `HOST:PORT` over TCP, or `ws://HOST:PORT` (`wss://` with TLS) over a WebSocket."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from trunkline.base.config_addresses import listening
from trunkline.base.values import Value

_SCHEMES = ("ws", "wss")


class ServerAddress(Value):
    """A host, a port, and the scheme of a WebSocket; "" for TCP."""

    host: str
    port: int
    scheme: str = ""

    def __str__(self) -> str:
        """As people write it."""
        shown = f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
        return f"{self.scheme}://{shown}" if self.scheme else shown

    @property
    def is_websocket(self) -> bool:
        """Whether it is not TCP alone."""
        return bool(self.scheme)

    def tls(self, given: Any) -> Any:
        """What a connection is protected with: what was given, or with `wss` what this machine trusts."""
        if given is not None or self.scheme != "wss":
            return given
        from trunkline.base.http import trusted

        return trusted()

    @classmethod
    def of(cls, host: str, port: int) -> ServerAddress:
        """That of a client's arguments: `host` may be the address of a WebSocket, and then says the port, too.

        Raises:
            ValueError: it is no such address.
        """
        return cls.parse(host) if "://" in host else cls(host, port)

    @classmethod
    def parse(cls, text: str) -> ServerAddress:
        """The address in a text. What is behind the port of a WebSocket has no meaning, and is left out.

        Raises:
            ValueError: there is none.
        """
        if "://" not in text:
            place = listening(text)
            if place is None or not place[1]:
                raise ValueError(f"`{text}` is not the address of a Tryll server")
            return cls(*place)
        found = urlsplit(text)
        if found.scheme not in _SCHEMES or not found.hostname or found.port == 0 or found.username is not None:
            raise ValueError(f"`{text}` is not the address of a WebSocket")
        return cls(found.hostname, found.port or (443 if found.scheme == "wss" else 80), found.scheme)
