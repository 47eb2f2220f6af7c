"""Who is let in: programs and people with a token, and browsers that are signed in, under the exchange's own names, but
no web pages from elsewhere.

A page from elsewhere can make a browser send requests to loopback. It cannot change the `Origin` that the browser
tells, nor, where a name of its own leads here, the `Host`. Tokens are in the `Authorization` header alone: addresses
are kept in logs and histories. A browser that is signed in has a cookie, and with what changes something it sends what
only our own pages know (`FORGERY`).
"""

from __future__ import annotations

import hashlib
import hmac
from html import escape
from urllib.parse import quote

from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from trunkline.base import log_context
from trunkline.base.hosts import Hosts
from trunkline.exchange.api.errors import RETRY_SECONDS, ApiRefused
from trunkline.exchange.api.faces import has_face, refused
from trunkline.exchange.browsers import forgery_token
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.people import LOCAL, Person
from trunkline.exchange.settings import ExchangeSettings
from trunkline.store.database import DatabaseGone

#: What needs no token, whatever is configured: whoever supervises the process has none.
OPEN = "/livez"
METRICS = "/metrics"
#: Nor what a browser needs in order to be signed in.
SIGN_IN, STATIC = "/sign-in", "/static"

#: The header with which our pages show that they are ours.
FORGERY = "x-trunkline-page"
#: What the way in of browsers is called, in logs and in what is kept of who did what.
CONSOLE = "console"
_HARMLESS = ("GET", "HEAD", "OPTIONS")

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
    """Finds out who asks, for the routes behind it (`person`). Who is unknown gets no further than to what is open."""

    def __init__(self, app: ASGIApp, *, exchange: Exchange) -> None:
        self._app = app
        self._exchange = exchange

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        token, secret = token_in(scope), browser_secret(scope)
        found, digest = None, ""
        if token is not None:
            digest = hashlib.sha256(token.encode()).hexdigest()
            found = self._exchange.people.of_digest(digest)
        elif secret is not None and not has_face(scope):
            try:
                found, digest = await self._exchange.browsers.find(secret) or (None, "")
            except DatabaseGone:
                headers = {"Retry-After": str(RETRY_SECONDS)}
                refusal = ApiRefused(503, "The database does not answer. Try again later.", headers=headers)
                await refused(scope, refusal)(scope, receive, send)
                return
            if found is not None and not _is_ours(scope, secret):
                refusal = ApiRefused(403, "Only the console's own pages may do that.", code="forgery")
                await refused(scope, refusal)(scope, receive, send)
                return
            log_context.add(wire=CONSOLE)
        scope.setdefault("state", {}).update(person=found, token_sha256=digest)
        if found is not None or self._is_open(scope["path"]):
            await self._app(scope, receive, send)
        elif wants_page(scope) and _values(scope, b"sec-fetch-site") == [b"cross-site"]:
            # A link on somebody else's page: the browser keeps the cookie to itself until the next step is ours.
            await come_again(_address(scope))(scope, receive, send)
        elif wants_page(scope):
            await RedirectResponse(f"{SIGN_IN}?to={quote(_address(scope))}", 303)(scope, receive, send)
        else:
            said = "The token is not valid." if token else "Send your token as `Authorization: Bearer TOKEN`."
            await refused(scope, ApiRefused(401, said, headers=_CHALLENGE))(scope, receive, send)

    def _is_open(self, path: str) -> bool:
        if path == METRICS:
            return self._exchange.settings.metrics_without_token
        return path in (OPEN, SIGN_IN) or path.startswith(f"{STATIC}/")


def _is_ours(scope: Scope, secret: str) -> bool:
    """Whether a request that a browser sends changes nothing, or comes from a page of ours."""
    # The door is for everybody, and knows its own pages by their `Origin`.
    if scope["type"] == "http" and (scope["method"] in _HARMLESS or scope["path"] == SIGN_IN):
        return True
    sent = _values(scope, FORGERY.encode())
    return len(sent) == 1 and hmac.compare_digest(sent[0], forgery_token(secret).encode())


def come_again(address: str) -> Response:
    """A page that leads to an address of ours at once: the browser takes that for a step of our own."""
    page = f'<!doctype html><title>Trunkline</title><meta http-equiv="refresh" content="0;url={escape(address)}">'
    return Response(page, headers={"Cache-Control": "no-store"}, media_type="text/html")


def _address(scope: Scope) -> str:
    # With two slashes it would be another machine's.
    path, query = f"/{quote(scope['path'].lstrip('/'))}", scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


def wants_page(scope: Scope) -> bool:
    """Whether it is somebody at a browser, on the way to a page."""
    if scope["type"] != "http" or scope["method"] != "GET" or scope["path"].startswith("/api/") or has_face(scope):
        return False
    return any(b"text/html" in value for value in _values(scope, b"accept"))


class Local:
    """Every request comes from the user who runs the exchange: for a socket that nobody else can open."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {}).update(person=LOCAL, token_sha256="")
        await self._app(scope, receive, send)


def person(scope: Scope) -> Person | None:
    """Who makes the request; None if unknown, where no token is needed."""
    found: Person | None = scope["state"]["person"]
    return found


def token_digest(scope: Scope) -> str:
    """The SHA-256 of the token that a request is made with; nothing for the user who runs the exchange."""
    found: str = scope["state"]["token_sha256"]
    return found


async def still_known(exchange: Exchange, scope: Scope) -> Person | None:
    """Who a request is from, as far as that is known by now: a token may be taken away, or a browser signed out.

    Raises:
        DatabaseGone: nobody knows.
    """
    if digest := token_digest(scope):
        return exchange.people.of_digest(digest)
    secret = browser_secret(scope) if token_in(scope) is None else None
    if secret is None or person(scope) is not LOCAL:
        return person(scope)
    found = await exchange.browsers.find(secret)
    return None if found is None else found[0]


def cookie_name(scope: Scope) -> str:
    """What the cookie of a browser is called. Cookies are for a machine, which may run several exchanges."""
    # Of the address that people see: behind a proxy, several nodes are one.
    host = (_values(scope, b"host") or [b""])[0].decode("latin-1")
    _, colon, port = host.rpartition(":")
    return f"trunkline-{port if colon and port.isdecimal() else 0}"


def browser_secret(scope: Scope) -> str | None:
    """The secret of a browser that is, or was, signed in."""
    # Not by the standard library, which understands none of them if it does not understand one: all programs of this
    # machine share its cookies.
    found = (cookie_parser(value.decode("latin-1")) for value in _values(scope, b"cookie"))
    name = cookie_name(scope)
    return next((cookies[name] for cookies in found if name in cookies), None)


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
