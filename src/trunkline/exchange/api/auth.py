"""Who is let in: programs and people with a token, under the exchange's own names, but no web pages from elsewhere.

A page from elsewhere can make a browser send requests to loopback. It cannot change the `Origin` that the browser
tells, nor, where a name of its own leads here, the `Host`. Tokens are in the `Authorization` header alone: addresses
are kept in logs and histories.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from trunkline.base.hosts import Hosts
from trunkline.exchange.api.errors import ApiRefused
from trunkline.exchange.api.faces import refused
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.people import LOCAL, Person
from trunkline.exchange.settings import ExchangeSettings

#: What needs no token, whatever is configured: whoever supervises the process has none.
OPEN = "/livez"
METRICS = "/metrics"

#: A longer one cannot be valid, and is not hashed.
MAX_TOKEN = 4096

_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="trunkline"'}


class ApiNames:
    """Refuses requests under a name that is not the exchange's, and web pages from elsewhere."""

    def __init__(self, app: ASGIApp, *, exchange: Exchange) -> None:
        self._app = app
        self._exchange = exchange
        self._settings: ExchangeSettings | None = None
        self._hosts = Hosts()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket") and (refusal := self._refusal(scope)) is not None:
            await refused(scope, refusal)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> ApiRefused | None:
        settings = self._exchange.settings
        if settings is not self._settings:
            # The configuration was read again.
            self._settings, self._hosts = settings, Hosts.of(settings.listen[0], settings.hosts)
        if not self._hosts.allow_scope(scope):
            return ApiRefused(403, "The exchange is not known by that name.", code="foreign_host")
        origins = _values(scope, b"origin")
        own = {scheme + _values(scope, b"host")[0] for scheme in (b"http://", b"https://")}
        if any(origin not in own for origin in origins):
            return ApiRefused(403, "Web pages from other origins may not use the exchange.", code="foreign_origin")
        return None


class KnownPeople:
    """Finds out who asks, for the routes behind it (`person`). Who has no token gets no further than to `OPEN`."""

    def __init__(self, app: ASGIApp, *, exchange: Exchange) -> None:
        self._app = app
        self._exchange = exchange

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self._exchange.people.of_token(token) if (token := token_in(scope)) is not None else None
        scope.setdefault("state", {})["person"] = found
        path = scope["path"]
        is_open = path == OPEN or (path == METRICS and self._exchange.settings.metrics_without_token)
        if found is not None or is_open:
            await self._app(scope, receive, send)
            return
        said = "The token is not valid." if token else "Send your token as `Authorization: Bearer TOKEN`."
        await refused(scope, ApiRefused(401, said, headers=_CHALLENGE))(scope, receive, send)


class Local:
    """Every request comes from the user who runs the exchange: for a socket that nobody else can open."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {})["person"] = LOCAL
        await self._app(scope, receive, send)


def person(scope: Scope) -> Person | None:
    """Who makes the request; None if unknown, where no token is needed."""
    found: Person | None = scope["state"]["person"]
    return found


def token_in(scope: Scope) -> str | None:
    """The token of a request; None if there is none, or several."""
    found = _values(scope, b"authorization")
    scheme, _, token = found[0].partition(b" ") if len(found) == 1 else (b"", b"", b"")
    if scheme.lower() != b"bearer" or not 0 < len(token := token.strip()) <= MAX_TOKEN:
        return None
    try:
        return token.decode()
    except UnicodeDecodeError:
        return None


def _values(scope: Scope, wanted: bytes) -> list[bytes]:
    return [value for name, value in scope["headers"] if name == wanted]
