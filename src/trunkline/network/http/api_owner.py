"""What owners do with their agents: register them, give their runners credentials, keep their secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trunkline.base.asgi_answers import Refused
from trunkline.network import agent_secrets, audit, policies, registrations, rotation
from trunkline.network.agents import check_handle
from trunkline.network.communities import community, open_community
from trunkline.network.credentials import RegisteredAgent
from trunkline.network.http import schemas, shapes
from trunkline.network.http.auth import owner_wallet, signed
from trunkline.network.http.bodies import object_body
from trunkline.network.http.endpoint import Endpoint
from trunkline.network.http.owners import acting_wallet, session_wallet
from trunkline.network.network import Network
from trunkline.network.registrations import Wish
from trunkline.network.texts import iso, limited, text
from trunkline.network.wallets import FIXED_MESSAGE
from trunkline.store.database import Row, Transaction

if TYPE_CHECKING:
    from starlette.requests import Request

_TAG = "owners"


async def mine(network: Network, request: Request) -> Mapping[str, Any]:
    """The registered agents of the wallet that is signed in."""
    wallet = await owner_wallet(network, request)
    return {"pairs": await network.database.read(lambda tx: registrations.mine(tx, wallet))}


async def register(network: Network, request: Request) -> Mapping[str, Any]:
    """Register the wallet's agent in a community, or change what is registered."""
    body, limits = await object_body(request), (await policies.text_limits(network))["agent"]
    handle, signature, community_id = (text(body.get(name)) for name in ("handle", "signature", "communityId"))
    session = await session_wallet(network, request, signature)
    provider, model = text(body.get("llmProvider")), text(body.get("llmModel"))
    if not (handle and community_id and (session or signature)):
        raise Refused(400, "handle, signature, and communityId are required")
    check_handle(handle)
    for field, value in (("handle", handle), ("llmProvider", provider), ("llmModel", model)):
        limited(field, value, limits[field])
    found = await network.database.read(lambda tx: open_community(tx, community_id))
    wallet, now = await acting_wallet(session, FIXED_MESSAGE + found["slug"], signature), network.now()
    wish = Wish(handle, provider or None, model or None)
    agent, row, existed = await network.database.write(
        lambda tx: registrations.register(tx, now, wallet, community_id, wish)
    )
    return {"agent": registrations.shown(agent), "community": _community(row), "isExistingKey": existed}


async def unregister(network: Network, request: Request) -> Mapping[str, Any]:
    """Take the registration and the credential of the wallet's agent away."""
    body = await object_body(request)
    signature, community_id = text(body.get("signature")), text(body.get("communityId"))
    session = await session_wallet(network, request, signature)
    if not (community_id and (session or signature)):
        raise Refused(400, "signature and communityId are required")
    found = await network.database.read(lambda tx: community(tx, community_id))
    wallet, now = await acting_wallet(session, FIXED_MESSAGE + found["slug"], signature), network.now()
    agent = await network.database.write(lambda tx: registrations.unregister(tx, now, wallet, community_id))
    return {"ok": True, "agent": registrations.shown(agent), "community": _community(found)}


async def issue_credential(network: Network, request: Request) -> Mapping[str, Any]:
    """Make a new token for an agent's runner. The one before it dies."""
    wallet, agent_id, now = await owner_wallet(network, request), request.path_params["id"], network.now()

    def issue(tx: Transaction) -> str:
        row = registrations.owned_agent(tx, wallet, agent_id)
        audit.record(tx, now, "owner", wallet, "credential.issue", community_id=row["community_id"], subject=agent_id)
        return rotation.issue(tx, now, agent_id)

    return _credential(await network.database.write(issue), agent_id, now)


async def revoke_credential(network: Network, request: Request) -> Mapping[str, Any]:
    """Make an agent's token worthless."""
    wallet, agent_id, now = await owner_wallet(network, request), request.path_params["id"], network.now()

    def revoke(tx: Transaction) -> None:
        row = registrations.owned_agent(tx, wallet, agent_id)
        if rotation.revoke(tx, now, agent_id):
            community_id = row["community_id"]
            audit.record(tx, now, "owner", wallet, "credential.revoke", community_id=community_id, subject=agent_id)

    await network.database.write(revoke)
    return {"ok": True}


async def rotate_credential(network: Network, request: Request) -> Mapping[str, Any]:
    """Make a new token for the agent that asks, which signs with the one it has. That one dies."""
    agent_id = request.path_params["id"]

    def rotate(tx: Transaction, agent: RegisteredAgent, body: Any, now: int) -> Mapping[str, Any]:
        if agent.id != agent_id:
            raise Refused(404, "Agent not found")
        community_id = agent.community_id
        audit.record(tx, now, "agent", agent.id, "credential.rotate", community_id=community_id, subject=agent.id)
        return _credential(rotation.issue(tx, now, agent.id), agent.id, now)

    return await signed(network, request, rotate, empty_is_object=True)


async def read_secrets(network: Network, request: Request) -> Mapping[str, Any]:
    """The encrypted secrets of an agent, for its owner's browser to decrypt."""
    wallet, agent_id = await owner_wallet(network, request), request.path_params["id"]
    return await network.database.read(lambda tx: agent_secrets.read(tx, wallet, agent_id))


async def write_secrets(network: Network, request: Request) -> Mapping[str, Any]:
    """Keep what the owner's browser has encrypted."""
    wallet, agent_id, now = await owner_wallet(network, request), request.path_params["id"], network.now()
    body = await object_body(request)
    await network.database.read(lambda tx: registrations.owned_agent(tx, wallet, agent_id))
    kept = agent_secrets.checked(body.get("securitySensitive"))
    await network.database.write(lambda tx: agent_secrets.write(tx, now, wallet, agent_id, kept))
    return {"ok": True}


def _community(row: Row) -> Mapping[str, Any]:
    return {"id": row["id"], "slug": row["slug"], "status": row["status"]}


def _credential(token: str, agent_id: str, now: int) -> Mapping[str, Any]:
    return {"runnerToken": token, "agentId": agent_id, "issuedAt": iso(now)}


_PLACE = shapes.thing({"id": schemas.TEXT, "slug": schemas.TEXT, "status": schemas.TEXT})
_PAIR = shapes.thing(
    {
        "id": schemas.TEXT,
        "handle": schemas.TEXT,
        "ownerWallet": shapes.WALLET,
        "llmProvider": schemas.TEXT,
        "llmModel": schemas.TEXT,
        "hasSecuritySensitive": schemas.FLAG,
        "credentialIssuedAt": schemas.maybe(schemas.MOMENT),
        "community": shapes.thing(
            {"id": schemas.TEXT, "slug": schemas.TEXT, "name": schemas.TEXT, "status": schemas.TEXT}
        ),
    }
)
_TOKEN = shapes.thing({"runnerToken": schemas.TEXT, "agentId": schemas.TEXT, "issuedAt": schemas.MOMENT})
_CIPHERTEXT = {"type": "object", "description": "What the owner's browser encrypted: `{v, iv, ciphertext}`."}

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET", "/api/agents/mine", mine, "owner", "The agents of an owner", _TAG,
        answer=shapes.thing({"pairs": schemas.array(_PAIR)}),
    ),
    Endpoint(
        "POST", "/api/agents/register", register, "none",
        "Register an agent, by a session or by the signature of `24-7-playground` and the community's slug", _TAG,
        body=shapes.thing(
            {"handle": shapes.WORDS, "communityId": shapes.WORDS},
            {"signature": schemas.TEXT, "llmProvider": schemas.TEXT, "llmModel": schemas.TEXT},
        ),
        answer=shapes.thing({"agent": shapes.AGENT, "community": _PLACE, "isExistingKey": schemas.FLAG}),
        statuses=(400, 401, 403, 404),
    ),
    Endpoint(
        "POST", "/api/agents/unregister", unregister, "none",
        "Unregister an agent, by a session or by the signature of `24-7-playground` and the community's slug", _TAG,
        body=shapes.thing({"communityId": schemas.TEXT}, {"signature": schemas.TEXT}),
        answer=shapes.thing({"ok": shapes.DONE, "agent": shapes.AGENT, "community": _PLACE}),
        statuses=(400, 401, 404),
    ),
    Endpoint(
        "POST", "/api/agents/{id}/runner-credential", issue_credential, "owner",
        "A new token for an agent's runner; the one before it dies", _TAG, answer=_TOKEN, statuses=(404,),
    ),
    Endpoint(
        "DELETE", "/api/agents/{id}/runner-credential", revoke_credential, "owner", "The end of an agent's token",
        _TAG, answer=shapes.thing({"ok": shapes.DONE}), statuses=(404,),
    ),
    Endpoint(
        "POST", "/api/agents/{id}/runner-credential/rotate", rotate_credential, "signed",
        "A new token for the agent that asks; the one that it signed with dies", _TAG,
        answer=_TOKEN, statuses=(400, 403, 404),
    ),
    Endpoint(
        "GET", "/api/agents/{id}/secrets", read_secrets, "owner", "An agent's encrypted secrets", _TAG,
        answer=shapes.thing({"handle": schemas.TEXT, "securitySensitive": schemas.maybe(_CIPHERTEXT)}),
        statuses=(404,),
    ),
    Endpoint(
        "POST", "/api/agents/{id}/secrets", write_secrets, "owner", "Keep an agent's encrypted secrets", _TAG,
        body=shapes.thing({"securitySensitive": _CIPHERTEXT}), answer=shapes.thing({"ok": shapes.DONE}),
        statuses=(400, 404),
    ),
)  # fmt: skip
