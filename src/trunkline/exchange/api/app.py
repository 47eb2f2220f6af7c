"""The application: all routes of the API, and the probes of whoever supervises the process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from trunkline.base.asgi_answers import answer
from trunkline.base.asgi_headers import NO_SNIFFING, AddedHeaders
from trunkline.base.asgi_last_resort import LastResort
from trunkline.base.asgi_whence import Whence
from trunkline.core import tracing
from trunkline.exchange.api import (
    agent,
    agents,
    approvals,
    calls,
    cluster,
    events,
    exports,
    files,
    graphs,
    metrics,
    models,
    overview,
    sessions,
    settings,
    signing_in,
    stories,
    turns,
    usage,
    watchers,
)
from trunkline.exchange.api.auth import OPEN, ApiNames, KnownPeople, Local, person
from trunkline.exchange.api.endpoint import ApiCall, ApiEndpoint
from trunkline.exchange.api.errors import HANDLERS, ApiRefused, error
from trunkline.exchange.api.events import EventStreams
from trunkline.exchange.api.faces import FaceForms, FaceRoutes, OpenFaces
from trunkline.exchange.api.faces_here import FACES
from trunkline.exchange.api.openapi import document
from trunkline.exchange.api.schemas import FLAG, obj
from trunkline.exchange.console import routes as console_routes
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.people import Person

#: Reads the configuration again. Raises `ConfigError` if it is wrong: then nothing has changed.
Reload = Callable[[], Awaitable[None]]

#: What a request is told that takes longer than the exchange has left.
CUT = error(ApiRefused(503, "The exchange is stopping. What was asked for may have been done."))

#: Who makes a request where no token is needed.
_ANYBODY = Person("", "observer")

#: The wire of requests that are for no face.
API = "http"

_OK = obj(ok=FLAG)


def application(
    exchange: Exchange,
    *,
    local: bool = False,
    reload: Reload | None = None,
    streams: EventStreams | None = None,
    faces: OpenFaces | None = None,
) -> Starlette:
    """The exchange over HTTP. Its `state` has the `streams` and the `faces`, to be closed at the end.

    Args:
        local: every request comes from the user who runs it: for a socket that nobody else can open.
        reload: what `POST /api/reload` does.
        streams, faces: those of another application of the same exchange, to be shared with it.
    """
    faces = faces or OpenFaces(exchange, FACES)
    strict = [Middleware(ApiNames, exchange=exchange), Middleware(KnownPeople, exchange=exchange)]
    gate = [Middleware(Local)] if local else strict
    routes = [*_routes(exchange, all_endpoints()), *console_routes.routes(exchange)]
    last_resort = Middleware(
        LastResort, answer=error(ApiRefused(500, "Internal error.", code="internal")), stopping=CUT
    )
    whence = Middleware(Whence, wire=lambda path: faces.wire(path) or API, is_traced=tracing.is_on)
    forms, inside = Middleware(FaceForms, faces=faces), Middleware(FaceRoutes, faces=faces)
    handlers = {**HANDLERS, HTTPException: console_routes.handler(exchange)}
    added = Middleware(AddedHeaders, headers=NO_SNIFFING)
    middleware = [added, whence, last_resort, forms, *gate, inside]
    app = Starlette(routes=routes, middleware=middleware, exception_handlers=handlers)
    app.router.redirect_slashes = False
    app.state.streams, app.state.reload, app.state.faces = streams or EventStreams(), reload, faces
    app.state.overview = overview.shared(exchange)
    return app


def all_endpoints() -> tuple[ApiEndpoint, ...]:
    """Every route that needs a token."""
    parts = (
        overview,
        sessions,
        watchers,
        files,
        calls,
        stories,
        events,
        approvals,
        agents,
        agent,
        graphs,
        cluster,
        metrics,
        signing_in,
        usage,
        models,
        settings,
        turns,
        exports,
    )
    return (*(endpoint for part in parts for endpoint in part.ENDPOINTS), *_OWN)


async def _reload(call: ApiCall) -> Mapping[str, Any]:
    """`POST /api/reload`."""
    reload: Reload | None = call.request.app.state.reload
    if reload is None:
        raise ApiRefused(409, "This exchange has no file that could have changed.")
    await reload()
    return {"ok": True}


async def _ready(call: ApiCall) -> Mapping[str, Any]:
    """`GET /readyz`: whether it is ready to serve."""
    if call.exchange.cluster is not None:
        call.exchange.cluster.check()
    await call.exchange.switchboard.row("")
    return {"ok": True}


_OWN = (
    ApiEndpoint("GET", "/readyz", _ready, "observer", "Whether it can do its work", answer=_OK),
    ApiEndpoint("POST", "/api/reload", _reload, "admin", "Read the configuration again", answer=_OK, statuses=(409,)),
)


def _routes(exchange: Exchange, endpoints: Iterable[ApiEndpoint]) -> list[BaseRoute]:
    by_path: dict[str, dict[str, ApiEndpoint]] = {}
    for endpoint in endpoints:
        by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint
    routes = [Route(path, _answering(exchange, methods), methods=list(methods)) for path, methods in by_path.items()]
    described = answer(document(endpoints))

    async def openapi(request: Request) -> Response:
        return described

    async def alive(request: Request) -> Response:
        return answer({"ok": True})

    return [*routes, Route("/api/openapi.json", openapi), Route(OPEN, alive)]


def _answering(exchange: Exchange, methods: Mapping[str, ApiEndpoint]) -> Callable[[Request], Awaitable[Response]]:
    async def answering(request: Request) -> Response:
        endpoint = methods["GET" if request.method == "HEAD" else request.method]
        who = person(request.scope) or _ANYBODY
        who.check(endpoint.least)
        result = await endpoint.handler(ApiCall(exchange, request, who))
        return result if isinstance(result, Response) else answer(result)

    return answering
