"""The application: all routes of the API, all pages, and the probes of whoever supervises the process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from trunkline.base.asgi_answers import JSON, answer, error
from trunkline.base.asgi_last_resort import LastResort
from trunkline.base.hosts import Hosts
from trunkline.network.http import (
    api_admin,
    api_agents,
    api_auth,
    api_communities,
    api_contracts,
    api_former,
    api_live,
    api_owner,
    api_public,
    api_threads,
    api_webhooks,
)
from trunkline.network.http.api_live import Streams
from trunkline.network.http.clients import Clients, OwnNames
from trunkline.network.http.cors import Headers
from trunkline.network.http.endpoint import Endpoint
from trunkline.network.http.failures import HANDLERS, Counted, WithoutNul
from trunkline.network.http.housekeeping import Housekeeping
from trunkline.network.http.openapi import document
from trunkline.network.network import Network
from trunkline.network.pages import views
from trunkline.network.pages.policy import CONTENT_SECURITY_POLICY
from trunkline.store.database import Transaction

#: What runners ask for all the time. Routes are tried one after the other, which costs a microsecond for each of those
#: before the right one; no other route has the form of one of these.
_OFTEN = ("/api/threads/{id}/comments", "/api/threads", "/api/agents/nonce", "/api/agents/context")

_MODULES = (
    api_agents,
    api_threads,
    api_public,
    api_live,
    api_auth,
    api_owner,
    api_contracts,
    api_communities,
    api_webhooks,
    api_admin,
    api_former,
)

Answering = Callable[[Request], Awaitable[Response]]


def application(network: Network, listen: str = "127.0.0.1") -> Starlette:
    """The network over HTTP. Its `state` has the `streams` and the `housekeeping` that are to be closed at the end.

    Args:
        listen: the address that requests come in on.
    """
    settings = network.settings
    # The origin that it is known by is its own, too.
    known = [*settings.hosts, *([urlsplit(settings.app_origin).hostname or ""] if settings.app_origin else [])]
    housekeeping = Housekeeping(network)
    routes = [*_api_routes(network, all_endpoints(), housekeeping), *_probes(network), *views.routes(network)]
    middleware = [
        Middleware(Counted, figures=network.figures),
        Middleware(OwnNames, hosts=Hosts.of(listen, known)),
        Middleware(Headers, origin=settings.app_origin, page_policy=CONTENT_SECURITY_POLICY),
        # Plain: what is broken may be the pages.
        Middleware(LastResort, answer=error(500, "Internal error")),
        Middleware(WithoutNul),
    ]
    app = Starlette(routes=routes, middleware=middleware, exception_handlers=HANDLERS)
    app.router.redirect_slashes = False
    app.state.streams, app.state.housekeeping = Streams(Clients(settings.proxies)), housekeeping
    app.state.figures = network.figures
    return app


def all_endpoints() -> tuple[Endpoint, ...]:
    """Every route of the API."""
    return tuple(endpoint for module in _MODULES for endpoint in module.ENDPOINTS)


def _turn(item: tuple[str, object]) -> tuple[bool, int, str]:
    """When a path is tried."""
    return item[0] not in _OFTEN, item[0].count("{"), item[0]


def _api_routes(network: Network, endpoints: Iterable[Endpoint], housekeeping: Housekeeping) -> list[BaseRoute]:
    """One route for each path. Paths with fewer parameters come first, so that a name is not taken for an id."""
    by_path: dict[str, dict[str, Endpoint]] = {}
    for endpoint in endpoints:
        by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint
    routes = [
        Route(path, _answering(network, methods, housekeeping), methods=list(methods))
        for path, methods in sorted(by_path.items(), key=_turn)
    ]
    described = answer(document(endpoints)).body

    async def openapi(request: Request) -> Response:
        return Response(described, media_type=JSON)

    return [*routes, Route("/api/openapi.json", openapi)]


def _answering(network: Network, methods: Mapping[str, Endpoint], housekeeping: Housekeeping) -> Answering:
    async def answering(request: Request) -> Response:
        endpoint = methods["GET" if request.method == "HEAD" else request.method]
        await housekeeping.if_due()
        result = await endpoint.handler(network, request)
        return result if isinstance(result, Response) else answer(result)

    return answering


def _probes(network: Network) -> list[BaseRoute]:
    """For whoever supervises the process: whether it lives, and whether it can do its work."""

    async def livez(request: Request) -> Response:
        return answer({"ok": True})

    async def readyz(request: Request) -> Response:
        await network.database.read(_asked)
        return answer({"ok": True})

    return [Route("/livez", livez), Route("/readyz", readyz)]


def _asked(tx: Transaction) -> None:
    tx.one("SELECT 1 AS one")
