"""Who is let in where no exchange knows people: programs that know the token, if there is one, and no web pages."""

from __future__ import annotations

import hmac

from starlette.types import ASGIApp, Receive, Scope, Send

from trunkline.base.hosts import Hosts
from trunkline.wires.openai.errors import OpenAIRefused
from trunkline.wires.openai.serve import error

_UNAUTHORIZED, _FORBIDDEN = 401, 403
_BEARER = b"bearer"


class TokenGate:
    """Refuses requests under a name that is not the server's, from web pages, and without the token.

    A page from anywhere can make a browser send requests to loopback. It cannot change the `Origin` that the browser
    tells, nor, where a name of its own leads here, the `Host`.
    """

    def __init__(self, app: ASGIApp, hosts: Hosts, token: str = "") -> None:
        """`token`: empty if nobody needs one."""
        self._app = app
        self._hosts = hosts
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = self._refusal(scope) if scope["type"] == "http" else None
        await (self._app if refused is None else error(refused))(scope, receive, send)

    def _refusal(self, scope: Scope) -> OpenAIRefused | None:
        if not self._hosts.allow_scope(scope):
            return OpenAIRefused(_FORBIDDEN, "The server is not known by that name.", code="foreign_host")
        if any(name == b"origin" for name, _ in scope["headers"]):
            return OpenAIRefused(_FORBIDDEN, "Web pages may not use this server.", code="foreign_origin")
        if not self._token:
            return None
        found = [value for name, value in scope["headers"] if name == b"authorization"]
        scheme, _, token = found[0].partition(b" ") if len(found) == 1 else (b"", b"", b"")
        if scheme.lower() == _BEARER and hmac.compare_digest(token.strip(), self._token):
            return None
        told = "The token is not valid." if token else "Send the token as `Authorization: Bearer TOKEN`."
        return OpenAIRefused(_UNAUTHORIZED, told, headers={"www-authenticate": 'Bearer realm="trunkline"'})
