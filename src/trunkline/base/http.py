"""One way to make HTTP clients, so that proxies, certificates and time limits are the same everywhere.

- Proxies: `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`, in either case.
- Certificates: `SSL_CERT_FILE`, `SSL_CERT_DIR`, `REQUESTS_CA_BUNDLE`, the first that is set; else the bundled
  authorities and those that the system's administrator added.
- Redirects are not followed unless asked for: a header with a key would go along to the other host.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterable
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl

    import httpx

#: A host that is there answers within a second or two; a firewall that drops packets never does.
CONNECT_SECONDS = 10.0

#: The longest silence of an open connection. A model may think for minutes before its first byte; what is silent for
#: longer than this is gone.
READ_SECONDS = 600.0

#: The longest time that a peer may take no byte of what we send.
WRITE_SECONDS = 60.0

#: How long an idle connection is kept: through the pause between two turns, and not longer than most servers do.
KEEPALIVE_SECONDS = 55.0

#: The variables that name a file of certificates, or folders of them.
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")

_OWN_MACHINE = ("all://localhost", "all://127.0.0.1", "all://[::1]")


def client(
    *,
    secure: bool = True,
    connect: float = CONNECT_SECONDS,
    read: float = READ_SECONDS,
    redirects: bool = False,
) -> httpx.AsyncClient:
    """A client for the running event loop.

    Args:
        secure: False if no address with `https` will be asked for: then no certificates are loaded, which takes long.
        connect: seconds that a connection may take to be made.
        read: seconds of silence after which a connection counts as lost.
        redirects: follow them. Only for requests that carry no key.

    Raises:
        ValueError: a variable for proxies or certificates holds what cannot work; the text names it.
    """
    load()
    import httpx

    context = trusted() if secure else _trusting_nobody()
    try:
        return httpx.AsyncClient(
            headers={"user-agent": user_agent(), "accept-encoding": "identity"},
            timeout=httpx.Timeout(connect=connect, read=read, write=WRITE_SECONDS, pool=connect),
            limits=httpx.Limits(keepalive_expiry=KEEPALIVE_SECONDS),
            verify=context,
            follow_redirects=redirects,
            # What runs on this machine is not behind a proxy, whether or not `NO_PROXY` says so.
            mounts=dict.fromkeys(_OWN_MACHINE),
        )
    except ImportError:
        raise ValueError("A SOCKS proxy needs a package more: `pip install 'httpx[socks]'`.") from None
    except (httpx.InvalidURL, ValueError) as error:
        raise ValueError(f"A proxy variable such as `HTTPS_PROXY` holds no address that can be used: {error}") from None


class BodyTooLong(ValueError):
    """An answer has more bytes than anybody wants."""


async def whole(pieces: AsyncIterable[bytes], most: int, begun: bytes = b"") -> bytes:
    """All bytes of an answer, `begun` in front of them.

    Raises:
        TooLong: there are more than `most`.
    """
    data = bytearray(begun)
    async for piece in pieces:
        data += piece
        if len(data) > most:
            raise BodyTooLong(f"the answer has more than {most} bytes")
    return bytes(data)


def load() -> None:
    """Import the HTTP library and what its first connection needs. It takes a while: best while nobody waits."""
    from importlib import import_module
    from importlib.util import find_spec

    if "httpx" not in sys.modules:
        # The library's own command line would bring two terminal libraries along, and half of the time is theirs.
        sys.modules["httpx._main"] = None  # type: ignore[assignment]  # None makes its import fail, as if not installed
        try:
            import_module("httpx")
        finally:
            del sys.modules["httpx._main"]
    import_module("httpcore")
    with suppress(ModuleNotFoundError):
        # It is imported by name at the first request, and that name is anyio's own affair.
        import_module("anyio._backends._asyncio")
    if "sniffio" not in sys.modules and find_spec("sniffio") is None:
        # Looked for at every step of every request: that it is not there is found out once.
        sys.modules.setdefault("sniffio", None)  # type: ignore[arg-type]


def user_agent() -> str:
    """How we present ourselves."""
    import trunkline

    return f"trunkline/{trunkline.__version__}"


def _trusting_nobody() -> ssl.SSLContext:
    import ssl

    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def trusted() -> ssl.SSLContext:
    """Who may say that a server is the one it claims to be. Takes long: there are many.

    Raises:
        ValueError: a variable for certificates names none; the text says which.
    """
    import ssl

    for variable in _CERTIFICATES:
        if place := os.environ.get(variable):
            folders = [folder for folder in place.split(os.pathsep) if os.path.isdir(folder)]
            try:
                context = ssl.create_default_context(
                    cafile=None if folders else place, capath=next(iter(folders), None)
                )
                for folder in folders[1:]:
                    context.load_verify_locations(capath=folder)
                return context
            except OSError as error:
                reason = error.strerror or str(error)
                raise ValueError(f"`{variable}`: cannot read certificates from `{place}`: {reason}") from None
    import certifi

    # The system's folder is searched when a connection is made, not read now: it costs nothing.
    return ssl.create_default_context(cafile=certifi.where(), capath=ssl.get_default_verify_paths().capath)
