"""The pages: each reads what it shows in one go, and has the texts in its HTML.

Nothing here knows who reads. What only an owner can do is there for everybody, hidden; a script shows it to the owner,
and the API decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from trunkline.base import pages
from trunkline.base.asgi_answers import Refused
from trunkline.base.plain_words import MAX_QUERY
from trunkline.network import feeds
from trunkline.network.network import Network
from trunkline.network.pages import atom, reading
from trunkline.network.pages.markdown import Renderer
from trunkline.network.pages.policy import local_path
from trunkline.network.pages.rendering import page
from trunkline.store.database import Transaction

View = Callable[[Network, Request], Awaitable[Response]]

#: Communities, threads and comments on one page, and events on the first one.
COMMUNITIES = 24
THREADS = 25
COMMENTS = 100
ACTIVITY = 12

#: Owners and people filter by wallet: `0x` and 40 digits.
_WALLET_CHARS = 42


def routes(network: Network) -> list[BaseRoute]:
    """All pages, and the files that they need."""

    def shown(view: View) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            return await view(network, request)

        return answer

    routes = [Route(path, shown(view), methods=["GET"]) for path, view in _VIEWS.items()]
    return [*routes, Mount("/static", pages.static(__package__ or ""))]


async def _home(network: Network, request: Request) -> Response:
    def work(tx: Transaction) -> dict[str, Any]:
        return {"count": reading.count(tx), "activity": feeds.activity(tx, ACTIVITY)}

    return await page("home.html", **await network.database.read(work))


async def _about(network: Network, request: Request) -> Response:
    return await page("about.html")


async def _communities(network: Network, request: Request) -> Response:
    query, owner, before = _asked(request, "q"), _wallet(request), _asked(request, "before")
    found = await network.database.read(
        lambda tx: feeds.communities(tx, query=query, owner=owner, before=before, limit=COMMUNITIES)
    )
    return await page("communities.html", **found, q=query, owner=owner)


async def _community(network: Network, request: Request) -> Response:
    slug, query = request.path_params["slug"], _asked(request, "q")
    types = feeds.wanted_types(request.query_params.getlist("type"))

    def work(tx: Transaction) -> dict[str, Any]:
        found = feeds.community_threads(tx, slug, query=query, types=types, page=_part(request))
        id = found["community"]["id"]
        return {**found, "contracts": reading.contracts(tx, id), "agents": reading.agents(tx, id)}

    found = await network.database.read(work)
    return await page("community.html", **found, q=query, chosen=types, markdown=Renderer())


async def _thread(network: Network, request: Request) -> Response:
    slug, id = request.path_params["slug"], request.path_params["id"]
    after, at = _asked(request, "after"), _asked(request, "at")

    def work(tx: Transaction) -> dict[str, Any]:
        found = feeds.thread_entered(tx, id, after=after, at=at, limit=COMMENTS)
        if found["community"]["slug"] != slug:
            raise Refused(404, "Thread not found.")
        links = reading.links(tx, [found["thread"]["body"], *(comment["body"] for comment in found["comments"])])
        return {**found, "links": links}

    found = await network.database.read(work)
    return await page("thread.html", **found, markdown=Renderer(found["links"]))


async def _requests(network: Network, request: Request) -> Response:
    query, owner, status = _asked(request, "q"), _wallet(request), _asked(request, "status")
    status = status if status in ("resolved", "rejected", "all") else "pending"

    def work(tx: Transaction) -> dict[str, Any]:
        found = feeds.requests(tx, status=status, owner=owner, query=query, page=_part(request))
        return {**found, "answers": feeds.last_comments(tx, [thread["id"] for thread in found["threads"]])}

    found = await network.database.read(work)
    return await page("requests.html", **found, wanted={"status": status, "q": query, "owner": owner})


async def _reports(network: Network, request: Request) -> Response:
    query, owner, issued = _asked(request, "q"), _wallet(request), _asked(request, "issued")
    which = {"yes": True, "no": False}.get(issued)
    found = await network.database.read(
        lambda tx: feeds.reports(tx, issued=which, owner=owner, query=query, page=_part(request))
    )
    wanted = {"issued": issued if which is not None else "", "q": query, "owner": owner}
    return await page("reports.html", **found, wanted=wanted)


async def _agent(network: Network, request: Request) -> Response:
    id = request.path_params["id"]

    def work(tx: Transaction) -> dict[str, Any]:
        agent = reading.agent(tx, id)
        if agent is None:
            raise Refused(404, "Agent not found.")
        return {"agent": agent, "activity": feeds.activity(tx, ACTIVITY, agent_id=id)}

    return await page("agent.html", **await network.database.read(work))


async def _audit(network: Network, request: Request) -> Response:
    slug, before = _asked(request, "community"), _asked(request, "before")
    number = int(before) if before.isdecimal() and len(before) < len(str(2**63)) else None
    if before and number is None:
        raise Refused(400, "before is not the number of an entry")
    trail = await network.database.read(lambda tx: reading.audit(tx, slug, number))
    return await page("audit.html", trail=trail, slug=slug)


async def _sign_in(network: Network, request: Request) -> Response:
    return await page("sign_in.html", next=local_path(request.query_params.get("next", "")))


async def _manage(network: Network, request: Request) -> Response:
    chosen = _asked(request, "community")
    return await page("manage.html", communities=await network.database.read(reading.open_communities), chosen=chosen)


async def _log(network: Network, request: Request) -> Response:
    return await page("log.html")


async def _admin(network: Network, request: Request) -> Response:
    return await page("admin.html")


async def _feed(network: Network, request: Request) -> Response:
    types = feeds.wanted_types(request.query_params.getlist("type"))
    # The name in `Host` is one of the network's own: others do not come this far.
    origin = network.settings.app_origin or f"{request.url.scheme}://{request.url.netloc}"
    feed = await network.database.read(lambda tx: atom.read(tx, request.path_params["slug"], types, origin))
    headers = {"ETag": feed.tag, "Cache-Control": "no-cache"}
    if atom.is_known(feed.tag, request.headers.get("if-none-match")):
        return Response(status_code=304, headers=headers)
    return Response(await asyncio.to_thread(atom.written, feed), headers=headers, media_type=atom.MEDIA_TYPE)


async def _sns(network: Network, request: Request) -> Response:
    return RedirectResponse("/communities", 308)


_VIEWS: Mapping[str, View] = {
    "/": _home,
    "/about": _about,
    "/communities": _communities,
    "/communities/{slug}": _community,
    "/communities/{slug}/feed.atom": _feed,
    "/communities/{slug}/threads/{id}": _thread,
    "/requests": _requests,
    "/reports": _reports,
    "/agents/{id}": _agent,
    "/audit": _audit,
    "/sign-in": _sign_in,
    "/manage": _manage,
    "/log": _log,
    "/admin": _admin,
    # Where communities were in the first version of the product.
    "/sns": _sns,
}


def _asked(request: Request, name: str) -> str:
    """A parameter of the query, short."""
    return request.query_params.get(name, "").strip()[:MAX_QUERY]


def _wallet(request: Request) -> str:
    return _asked(request, "owner").lower()[:_WALLET_CHARS]


def _part(request: Request) -> feeds.PageRequest:
    """Which part of a list of threads."""
    return feeds.PageRequest(_asked(request, "before"), THREADS)
