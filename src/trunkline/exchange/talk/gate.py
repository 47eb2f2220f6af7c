"""Who may come in: browsers on this machine that show this very page, and nobody else's page in them.

A page from elsewhere can make a browser open connections to loopback. It cannot change the `Origin` that the browser
tells, nor, where a name of its own leads here, the `Host`.
"""

from __future__ import annotations

from typing import Any

from trunkline.base import pages
from trunkline.base.hosts import Hosts

_OWN = Hosts()

_HEADERS = {
    **pages.HEADERS,
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "microphone=(self), camera=(), geolocation=()",
    "Cache-Control": "no-cache",
}


class Gate:
    """Wraps an application: what comes from elsewhere gets 403, and pages get a policy."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        host = _only(scope, b"host")
        is_socket = scope["type"] == "websocket"
        origin = _only(scope, b"origin")
        if not _OWN.allow(host) or (is_socket and origin != f"http://{host}"):
            await (_refuse_socket if is_socket else _refuse)(receive, send)
            return
        if is_socket:
            await self._app(scope, receive, send)
            return
        extra = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]
        # Older browsers do not take `'self'` for a WebSocket, so that is named.
        extra.append((b"content-security-policy", pages.policy(f"ws://{host}").encode()))

        async def sending(message: Any) -> None:
            if message["type"] == "http.response.start":
                names = {name for name, _ in extra}
                kept = [pair for pair in message["headers"] if pair[0].lower() not in names]
                message = {**message, "headers": [*kept, *extra]}
            await send(message)

        await self._app(scope, receive, sending)


def _only(scope: Any, wanted: bytes) -> str:
    """The value of a header that is there once; "" otherwise."""
    found = [value for name, value in scope["headers"] if name == wanted]
    return found[0].decode("latin-1") if len(found) == 1 else ""


async def _refuse(receive: Any, send: Any) -> None:
    body = b"This page is for browsers on the machine that it runs on.\n"
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _refuse_socket(receive: Any, send: Any) -> None:
    await receive()
    # Before it is accepted, this is a 403.
    await send({"type": "websocket.close", "code": 1008})
