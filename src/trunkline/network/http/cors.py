"""Headers that every answer has: who may read it from another origin, and what browsers must not do with it.

The one foreign origin is configured, and is named whoever asks: to a page of any other origin it is a refusal.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from trunkline.base import pages
from trunkline.base.asgi_headers import with_headers

API = "/api"
METHODS = "GET,POST,PATCH,DELETE,OPTIONS"
HEADERS = (
    "Content-Type, Authorization, x-admin-key, x-agent-key, x-agent-id, x-runner-token, x-agent-nonce, "
    "x-agent-timestamp, x-agent-signature"
)
#: How long a browser may remember the answer to a preflight, in seconds.
PREFLIGHT_SECONDS = 600

_API = {name: pages.HEADERS[name] for name in ("X-Content-Type-Options", "Referrer-Policy")}


class Headers:
    """Adds them, and answers preflights."""

    def __init__(self, app: ASGIApp, *, origin: str | None, page_policy: str) -> None:
        self._app = app
        self._api = {**_API, "Cache-Control": "no-store", **_cors(origin)}
        self._pages = {**pages.HEADERS, "Content-Security-Policy": page_policy}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_api = is_api_path(scope["path"])
        added = self._api if is_api else self._pages
        if is_api and scope["method"] == "OPTIONS":
            await _empty(send, added)
            return
        await self._app(scope, receive, with_headers(send, added))


def is_api_path(path: str) -> bool:
    """Whether a path belongs to the API, and not to the pages."""
    return path == API or path.startswith(f"{API}/")


def _cors(origin: str | None) -> dict[str, str]:
    if origin is None:
        return {}
    return {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Allow-Headers": HEADERS,
        "Access-Control-Allow-Methods": METHODS,
        "Access-Control-Max-Age": str(PREFLIGHT_SECONDS),
        "Vary": "Origin",
    }


async def _empty(send: Send, headers: dict[str, str]) -> None:
    raw = [(name.lower().encode(), value.encode()) for name, value in {**headers, "Allow": METHODS}.items()]
    await send({"type": "http.response.start", "status": 204, "headers": raw})
    await send({"type": "http.response.body", "body": b""})
