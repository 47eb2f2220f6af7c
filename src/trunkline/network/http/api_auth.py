"""Signing in with a wallet: a challenge, its signature, and a session for a day."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trunkline.base.asgi_answers import Refused
from trunkline.network import audit, challenges, owner_sessions, registrations
from trunkline.network.challenges import Challenge, Scope
from trunkline.network.http import schemas, shapes
from trunkline.network.http.auth import owner_wallet
from trunkline.network.http.bodies import object_body
from trunkline.network.http.endpoint import Endpoint
from trunkline.network.network import Network
from trunkline.network.texts import iso, text
from trunkline.network.wallets import signer, wallet
from trunkline.store.database import Row, Transaction

if TYPE_CHECKING:
    from starlette.requests import Request

_TAG = "sign-in"


async def owner_challenge(network: Network, request: Request) -> Mapping[str, Any]:
    """Give an owner a text to sign."""
    body = await object_body(request, lenient=True)
    owner, now = wallet(text(body.get("walletAddress"))), network.now()
    return _shown(challenges.issue(await challenges.seal(network), now, "OWNER_LOGIN", owner))


async def owner_verify(network: Network, request: Request) -> Mapping[str, Any]:
    """Take the signed text for a session."""
    body = await object_body(request)
    id, signature = text(body.get("challengeId")), text(body.get("signature"))
    if not id or not signature:
        raise Refused(400, "signature and challengeId are required")
    challenge = await _consumed(network, "OWNER_LOGIN", id)
    owner = await _proved(challenge, signature)
    return {"walletAddress": owner, "token": await _session(network, owner)}


async def owner_logout(network: Network, request: Request) -> Mapping[str, Any]:
    """End the session that the request carries."""
    owner = await owner_wallet(network, request)
    token = request.headers["authorization"].removeprefix("Bearer ").strip()
    now = network.now()

    def end(tx: Transaction) -> None:
        if owner_sessions.end(tx, token):
            audit.record(tx, now, "owner", owner, "session.end")

    await network.database.write(end)
    return {"ok": True}


async def agent_challenge(network: Network, request: Request) -> Mapping[str, Any]:
    """Give the owner of an agent a text to sign."""
    body = await object_body(request, lenient=True)
    address, slug = text(body.get("walletAddress")), text(body.get("communitySlug"))
    if not address or not slug:
        raise Refused(400, "walletAddress and communitySlug are required")
    owner, now = wallet(address), network.now()
    await network.database.read(lambda tx: _community(tx, slug))
    return _shown(challenges.issue(await challenges.seal(network), now, "AGENT_LOGIN", owner, slug))


async def agent_verify(network: Network, request: Request) -> Mapping[str, Any]:
    """Take the signed text for a session, if the wallet has an agent in the community."""
    body = await object_body(request)
    id, signature, slug = (text(body.get(name)) for name in ("challengeId", "signature", "communitySlug"))
    if not (id and signature and slug):
        raise Refused(400, "signature, communitySlug, and challengeId are required")
    challenge = await _consumed(network, "AGENT_LOGIN", id)
    if challenge.community_slug != slug:
        raise Refused(400, "Challenge community mismatch")
    owner = await _proved(challenge, signature)
    agent = await network.database.read(lambda tx: _registered(tx, owner, slug))
    token = await _session(network, owner)
    return {"walletAddress": owner, "agent": registrations.shown(agent), "token": token}


async def _consumed(network: Network, scope: Scope, id: str) -> Challenge:
    """Use a challenge up, durably, before anybody looks at the signature."""
    key, now = await challenges.seal(network), network.now()
    return await network.database.write(lambda tx: challenges.consume(tx, key, now, scope, id))


async def _proved(challenge: Challenge, signature: str) -> str:
    found = await signer(challenge.message, signature)
    if found != challenge.wallet:
        raise Refused(400, "Signature wallet does not match challenge wallet")
    return found


async def _session(network: Network, owner: str) -> str:
    now = network.now()

    def begin(tx: Transaction) -> str:
        audit.record(tx, now, "owner", owner, "session.begin")
        return owner_sessions.begin(tx, now, owner)

    return await network.database.write(begin)


def _community(tx: Transaction, slug: str) -> Row:
    row = tx.one("SELECT id FROM community WHERE slug = ?", (slug,))
    if row is None:
        raise Refused(404, "Community not found")
    return row


def _registered(tx: Transaction, owner: str, slug: str) -> Row:
    agent = registrations.agent_in(tx, owner, _community(tx, slug)["id"])
    if agent is None:
        raise Refused(404, "Agent not found")
    if not registrations.is_registered(tx, agent["id"]):
        raise Refused(404, "SNS API key is not registered for this pair")
    return agent


def _shown(challenge: Challenge) -> Mapping[str, Any]:
    shown = {"id": challenge.id, "message": challenge.message, "expiresAt": iso(challenge.expires_at)}
    return {"challenge": shown}


_CHALLENGE = shapes.thing(
    {"challenge": shapes.thing({"id": schemas.TEXT, "message": schemas.TEXT, "expiresAt": schemas.MOMENT})}
)
_SESSION = {"walletAddress": shapes.WALLET, "token": schemas.TEXT}

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "POST", "/api/auth/owner/challenge", owner_challenge, "none", "A text for an owner to sign", _TAG,
        body=shapes.thing({"walletAddress": shapes.ADDRESS}), answer=_CHALLENGE,
    ),
    Endpoint(
        "POST", "/api/auth/owner/verify", owner_verify, "none", "A session of an owner, for the signed text", _TAG,
        body=shapes.thing({"challengeId": schemas.TEXT, "signature": schemas.TEXT}), answer=shapes.thing(_SESSION),
    ),
    Endpoint(
        "POST", "/api/auth/owner/logout", owner_logout, "owner", "The end of a session", _TAG,
        answer=shapes.thing({"ok": shapes.DONE}),
    ),
    Endpoint(
        "POST", "/api/auth/challenge", agent_challenge, "none", "A text for an agent's owner to sign", _TAG,
        body=shapes.thing({"walletAddress": shapes.ADDRESS, "communitySlug": shapes.WORDS}), answer=_CHALLENGE,
        statuses=(400, 404),
    ),
    Endpoint(
        "POST", "/api/auth/verify", agent_verify, "none", "A session of an agent's owner, for the signed text", _TAG,
        body=shapes.thing({"challengeId": schemas.TEXT, "signature": schemas.TEXT, "communitySlug": schemas.TEXT}),
        answer=shapes.thing({**_SESSION, "agent": shapes.AGENT}), statuses=(400, 404),
    ),
)  # fmt: skip
