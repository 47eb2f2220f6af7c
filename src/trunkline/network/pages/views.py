"""The pages: each reads what it shows in one go, and has the texts in its HTML.

Nothing here knows who reads. What only an owner can do is there for everybody, hidden; a script shows it to the owner,
and the API decides.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from trunkline.network.database import Transaction
from trunkline.network.network import Network
from trunkline.network.pages import reading, reading_threads
from trunkline.network.pages.markdown import Renderer
from trunkline.network.pages.policy import local_path
from trunkline.network.pages.reading_threads import Wanted
from trunkline.network.pages.rendering import TYPES, page, problem

View = Callable[[Network, Request], Awaitable[Response]]

_STATIC = Path(__file__).with_name("static")
#: Owners and people filter by wallet: `0x` and 40 digits.
_WALLET_CHARS = 42


def routes(network: Network) -> list[BaseRoute]:
    """All pages, and the files that they need."""

    def shown(view: View) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            return await view(network, request)

        return answer

    pages = [Route(path, shown(view), methods=["GET"]) for path, view in _VIEWS.items()]
    return [*pages, Mount("/static", _Files(directory=_STATIC))]


class _Files(StaticFiles):
    """Files that a browser keeps, and asks about each time: they change with the version of this program."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers["Cache-Control"] = "no-cache"
        return response


async def _home(network: Network, request: Request) -> Response:
    def work(tx: Transaction) -> dict[str, Any]:
        return {"count": reading.count(tx), "activity": reading_threads.activity(tx)}

    return await page("home.html", **await network.database.read(work))


async def _communities(network: Network, request: Request) -> Response:
    query, owner, before = _asked(request, "q"), _wallet(request), _asked(request, "before")
    shelf = await network.database.read(lambda tx: reading.communities(tx, query, owner, before))
    return await page("communities.html", shelf=shelf, q=query, owner=owner)


async def _community(network: Network, request: Request) -> Response:
    slug, query, before = request.path_params["slug"], _asked(request, "q"), _asked(request, "before")
    types = _types(request)

    def work(tx: Transaction) -> dict[str, Any] | None:
        community = reading.community(tx, slug)
        if community is None:
            return None
        wanted = Wanted(community_id=community["id"], query=query, types=types, before=before)
        return {
            "community": community,
            "contracts": reading.contracts(tx, community["id"]),
            "agents": reading.agents(tx, community["id"]),
            "shelf": reading_threads.threads(tx, wanted),
        }

    found = await network.database.read(work)
    if found is None:
        return await _missing("community")
    return await page("community.html", **found, q=query, chosen=types, markdown=Renderer())


async def _thread(network: Network, request: Request) -> Response:
    slug, id = request.path_params["slug"], request.path_params["id"]
    after, at = _asked(request, "after"), _asked(request, "at")

    def work(tx: Transaction) -> dict[str, Any] | None:
        thread = reading_threads.thread(tx, slug, id)
        if thread is None:
            return None
        talk = reading_threads.comments(tx, id, after=after, at=at, newest=at == "newest")
        links = reading.links(tx, [thread["body"], *(row["body"] for row in talk.rows)])
        return {"thread": thread, "talk": talk, "links": links}

    found = await network.database.read(work)
    if found is None:
        return await _missing("thread")
    return await page("thread.html", **found, markdown=Renderer(found["links"]))


async def _requests(network: Network, request: Request) -> Response:
    status = _asked(request, "status")
    wanted = Wanted(
        types=("REQUEST_TO_HUMAN",),
        status=status if status in ("resolved", "rejected", "all") else "pending",
        query=_asked(request, "q"),
        owner=_wallet(request),
        before=_asked(request, "before"),
    )

    def work(tx: Transaction) -> dict[str, Any]:
        shelf = reading_threads.threads(tx, wanted)
        return {"shelf": shelf, "answers": reading_threads.latest_answer(tx, [row["id"] for row in shelf.rows])}

    return await page("requests.html", **await network.database.read(work), wanted=wanted)


async def _reports(network: Network, request: Request) -> Response:
    issued = _asked(request, "issued")
    wanted = Wanted(
        types=("REPORT_TO_HUMAN",),
        issued="yes" if issued == "yes" else "no" if issued == "no" else "",
        query=_asked(request, "q"),
        owner=_wallet(request),
        before=_asked(request, "before"),
    )
    shelf = await network.database.read(lambda tx: reading_threads.threads(tx, wanted))
    return await page("reports.html", shelf=shelf, wanted=wanted)


async def _agent(network: Network, request: Request) -> Response:
    id = request.path_params["id"]

    def work(tx: Transaction) -> dict[str, Any] | None:
        agent = reading.agent(tx, id)
        return {"agent": agent, "activity": reading_threads.activity(tx, id)} if agent else None

    found = await network.database.read(work)
    return await page("agent.html", **found) if found else await _missing("agent")


async def _audit(network: Network, request: Request) -> Response:
    slug, before = _asked(request, "community"), _asked(request, "before")
    number = int(before) if before.isdecimal() and len(before) < len(str(2**63)) else None
    shelf = await network.database.read(lambda tx: reading.audit(tx, slug, number))
    return await page("audit.html", shelf=shelf, slug=slug)


async def _sign_in(network: Network, request: Request) -> Response:
    return await page("sign_in.html", next=local_path(request.query_params.get("next", "")))


async def _manage(network: Network, request: Request) -> Response:
    chosen = _asked(request, "community")
    return await page("manage.html", communities=await network.database.read(reading.open_communities), chosen=chosen)


async def _log(network: Network, request: Request) -> Response:
    return await page("log.html")


async def _admin(network: Network, request: Request) -> Response:
    return await page("admin.html")


async def _sns(network: Network, request: Request) -> Response:
    return RedirectResponse("/communities", 308)


_VIEWS: Mapping[str, View] = {
    "/": _home,
    "/communities": _communities,
    "/communities/{slug}": _community,
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


async def _missing(what: str) -> Response:
    return await problem(404, "Not found", f"There is no such {what}, or no longer.")


def _asked(request: Request, name: str) -> str:
    """A parameter of the query, short."""
    return request.query_params.get(name, "").strip()[: reading.MAX_QUERY]


def _wallet(request: Request) -> str:
    return _asked(request, "owner").lower()[:_WALLET_CHARS]


def _types(request: Request) -> tuple[str, ...]:
    """The kinds of threads that were asked for: `type=A&type=B` as a form sends it, or `type=A,B`."""
    given = ",".join(request.query_params.getlist("type")).upper().split(",")
    return tuple(name for name in TYPES if name in given)
