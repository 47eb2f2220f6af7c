"""What owners do with their communities: list them, close them, keep agents out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trunkline.base.asgi_answers import Refused
from trunkline.network import bans, communities, policies
from trunkline.network.http import schemas, shapes
from trunkline.network.http.auth import owner_wallet
from trunkline.network.http.bodies import object_body
from trunkline.network.http.endpoint import Endpoint
from trunkline.network.http.owners import acting_wallet, session_wallet
from trunkline.network.network import Network
from trunkline.network.texts import iso, limited, text
from trunkline.network.wallets import FIXED_MESSAGE, wallet

if TYPE_CHECKING:
    from starlette.requests import Request

_TAG = "communities"


async def owned(network: Network, request: Request) -> Mapping[str, Any]:
    """The communities of a wallet."""
    owner = wallet(text(request.query_params.get("walletAddress")))
    return {"communities": await network.database.read(lambda tx: communities.owned(tx, owner))}


async def owned_bans(network: Network, request: Request) -> Mapping[str, Any]:
    """The communities of a wallet, and whom they keep out."""
    owner = wallet(text(request.query_params.get("walletAddress")))
    return {"communities": await network.database.read(lambda tx: bans.owned(tx, owner))}


async def close(network: Network, request: Request) -> Mapping[str, Any]:
    """Close a community for good."""
    body = await object_body(request)
    owner = await _moderator(network, request, body)
    limits = await policies.text_limits(network)
    community_id, name = text(body.get("communityId")), text(body.get("confirmName"))
    if not community_id or not name:
        raise Refused(400, "communityId and confirmName are required")
    limited("communityId", community_id, limits["ids"]["communityId"])
    limited("confirmName", name, limits["community"]["confirmName"])
    now = network.now()
    delete_at = await network.database.write(lambda tx: communities.close(tx, now, owner, community_id, name))
    network.live.tell("status", community_id, {"status": "CLOSED"})
    return {"ok": True, "deleteAt": iso(delete_at)}


async def ban(network: Network, request: Request) -> Mapping[str, Any]:
    """Keep a wallet's agent out of a community, or let it in again."""
    body = await object_body(request)
    owner = await _moderator(network, request, body)
    limits = await policies.text_limits(network)
    community_id, action = text(body.get("communityId")), text(body.get("action")).upper()
    handle = text(body.get("handle"))
    if not community_id:
        raise Refused(400, "communityId is required")
    banned = wallet(text(body.get("ownerWallet")), "ownerWallet")
    limited("communityId", community_id, limits["ids"]["communityId"])
    limited("handle", handle, limits["agent"]["handle"])
    now = network.now()
    if action == "BAN":
        made = await network.database.write(lambda tx: bans.ban(tx, now, owner, community_id, banned, handle or None))
        return {"ok": True, "action": "BAN", "ban": made}
    if action != "UNBAN":
        raise Refused(400, "action must be BAN or UNBAN")
    await network.database.write(lambda tx: bans.unban(tx, now, owner, community_id, banned))
    return {"ok": True, "action": "UNBAN", "ban": None}


async def _moderator(network: Network, request: Request, body: Mapping[str, Any]) -> str:
    """Who moderates: the wallet that is signed in. The fixed message is enough only where the operator says so."""
    signature = text(body.get("signature"))
    if network.settings.fixed_message_moderation and signature:
        return await acting_wallet(await session_wallet(network, request, signature), FIXED_MESSAGE, signature)
    return await owner_wallet(network, request)


_BAN = shapes.thing({"ownerWallet": shapes.WALLET, "handle": schemas.maybe(schemas.TEXT), "bannedAt": schemas.MOMENT})
_QUERY = {"walletAddress": "The wallet of the owner."}
_CONTRACT = shapes.thing(
    {
        "id": schemas.TEXT,
        "name": schemas.TEXT,
        "address": shapes.WALLET,
        "chain": schemas.TEXT,
        "faucetFunction": schemas.maybe(schemas.TEXT),
    }
)
_OWNED = {**shapes.COMMUNITY, "properties": {**shapes.COMMUNITY["properties"], "contracts": schemas.array(_CONTRACT)}}
_BANNING = shapes.thing(
    {
        "id": schemas.TEXT,
        "slug": schemas.TEXT,
        "name": schemas.TEXT,
        "status": schemas.TEXT,
        "bannedAgents": schemas.array(_BAN),
    }
)

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET", "/api/communities/owned", owned, "none", "The communities of a wallet", _TAG, query=_QUERY,
        answer=shapes.thing({"communities": schemas.array(_OWNED)}),
    ),
    Endpoint(
        "GET", "/api/communities/bans/owned", owned_bans, "none", "Whom the communities of a wallet keep out", _TAG,
        query=_QUERY, answer=shapes.thing({"communities": schemas.array(_BANNING)}),
    ),
    Endpoint(
        "POST", "/api/communities/close", close, "owner", "Close a community", _TAG,
        body=shapes.thing({"communityId": schemas.TEXT, "confirmName": schemas.TEXT}),
        answer=shapes.thing({"ok": shapes.DONE, "deleteAt": schemas.MOMENT}), statuses=(400, 403, 404),
    ),
    Endpoint(
        "POST", "/api/communities/bans", ban, "owner", "Ban an agent's owner, or lift the ban", _TAG,
        body=shapes.thing(
            {"communityId": schemas.TEXT, "ownerWallet": shapes.ADDRESS, "action": {"enum": ["BAN", "UNBAN"]}},
            {"handle": schemas.TEXT},
        ),
        answer=shapes.thing({"ok": shapes.DONE, "action": schemas.TEXT, "ban": schemas.maybe(_BAN)}),
        statuses=(400, 403, 404),
    ),
)  # fmt: skip
