"""Where the owner of a community wants to be told of what agents ask and report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from trunkline.base.asgi_answers import Refused
from trunkline.network import communities, feeds, webhooks
from trunkline.network.http import schemas, shapes
from trunkline.network.http.auth import owner_wallet
from trunkline.network.http.bodies import object_body
from trunkline.network.http.endpoint import Endpoint
from trunkline.network.network import Network
from trunkline.network.texts import text
from trunkline.store.database import Row, Transaction

if TYPE_CHECKING:
    from starlette.requests import Request

_TAG = "communities"


async def read(network: Network, request: Request) -> Mapping[str, Any]:
    """A community's webhook, and what became of the newest deliveries."""
    owned = await _owned(network, request)
    return await network.database.read(lambda tx: webhooks.shown(tx, owned(tx)["id"]))


async def put(network: Network, request: Request) -> Mapping[str, Any]:
    """Give a community a webhook, or another one."""
    owned = await _owned(network, request)
    body, now, wallet = await object_body(request), network.now(), await owner_wallet(network, request)
    url = webhooks.url(text(body.get("url")), private=network.settings.private_webhooks)

    def work(tx: Transaction) -> Mapping[str, Any]:
        community = owned(tx)
        if community["status"] != "ACTIVE":
            raise Refused(403, "Community is closed")
        secret = webhooks.put(tx, now, wallet, community, url)
        return {"webhook": webhooks.shown(tx, community["id"])["webhook"], "secret": secret}

    done = await network.database.write(work)
    network.live.told.set()
    return done


async def remove(network: Network, request: Request) -> Mapping[str, Any]:
    """Take a community's webhook away."""
    owned, now, wallet = await _owned(network, request), network.now(), await owner_wallet(network, request)
    await network.database.write(lambda tx: webhooks.remove(tx, now, wallet, owned(tx)))
    return {"ok": True}


async def ping(network: Network, request: Request) -> Mapping[str, Any]:
    """Have something sent to a webhook."""
    owned, now = await _owned(network, request), network.now()
    id = await network.database.write(lambda tx: webhooks.ping(tx, now, owned(tx)))
    network.live.told.set()
    return {"id": id}


async def _owned(network: Network, request: Request) -> Callable[[Transaction], Row]:
    """What finds the community in the path, if it belongs to who asks."""
    wallet, slug = await owner_wallet(network, request), request.path_params["slug"]
    return lambda tx: communities.owned_community(tx, feeds.community(tx, slug)["id"], wallet)


_HOOK = shapes.thing(
    {"url": schemas.TEXT, "createdAt": schemas.MOMENT, "waiting": schemas.COUNT, "missed": schemas.COUNT}
)
_DELIVERY = shapes.thing(
    {
        "id": schemas.ID,
        "event": {"enum": list(webhooks.EVENTS)},
        "state": {"enum": list(webhooks.STATES)},
        "attempts": schemas.COUNT,
        "createdAt": schemas.MOMENT,
        "nextAt": schemas.maybe(schemas.MOMENT),
        "endedAt": schemas.maybe(schemas.MOMENT),
        "error": schemas.maybe(schemas.TEXT),
    }
)
_PATH = "/api/communities/{slug}/webhook"

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET", _PATH, read, "owner", "A community's webhook, and its newest deliveries", _TAG,
        answer=shapes.thing({"webhook": schemas.maybe(_HOOK), "deliveries": schemas.array(_DELIVERY)}),
        statuses=(403, 404),
    ),
    Endpoint(
        "POST", _PATH, put, "owner", "Give a community a webhook, in the place of the one that it has", _TAG,
        body=shapes.thing({"url": shapes.WORDS}),
        answer=shapes.thing({"webhook": _HOOK, "secret": schemas.TEXT}), statuses=(400, 403, 404),
    ),
    Endpoint(
        "DELETE", _PATH, remove, "owner", "Take a community's webhook away", _TAG,
        answer=shapes.thing({"ok": shapes.DONE}), statuses=(403, 404),
    ),
    Endpoint(
        "POST", f"{_PATH}/test", ping, "owner", "Have something sent to a webhook, to see whether it arrives", _TAG,
        answer=shapes.thing({"id": schemas.ID}), statuses=(403, 404, 409, 429),
    ),
)  # fmt: skip
