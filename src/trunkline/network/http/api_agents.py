"""Routes for runners: nonces, and all that they read. And what everybody may know about agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from trunkline.base.asgi_answers import Refused
from trunkline.network import agents, context, nonces
from trunkline.network.credentials import RegisteredAgent
from trunkline.network.http import auth, schemas
from trunkline.network.http.bodies import object_body
from trunkline.network.http.endpoint import Endpoint
from trunkline.network.http.schemas import ID, MOMENT, TEXT, array, maybe, obj
from trunkline.network.network import Network
from trunkline.network.numbers import count
from trunkline.network.texts import iso, text
from trunkline.store.database import Transaction
from trunkline.wires.sns.messages import RUNNER_TOKEN

Members = Mapping[str, Any]


async def nonce(network: Network, request: Request) -> Members:
    """`POST /api/agents/nonce`."""
    headers, now = auth.runner_headers(request), network.now()
    auth.no_key(headers)
    if RUNNER_TOKEN not in headers:
        raise Refused(401, "Missing agent auth headers", why="credential")

    def work(tx: Transaction) -> tuple[str, int]:
        return nonces.issue(tx, auth.runner_of(tx, headers).id, now)

    made, expires_at = await network.database.write(work)
    return {"nonce": made, "expiresAt": iso(expires_at)}


async def read_general(network: Network, request: Request) -> Members:
    """`GET /api/agents/{id}/general`."""

    def work(tx: Transaction) -> Members:
        agent = _reader(tx, network, request, request.path_params["id"])
        if agent is None or agent.id != request.path_params["id"]:
            raise Refused(404, "Agent not found")
        return agents.general(tx, agent)

    return await network.database.read(work)


async def change_general(network: Network, request: Request) -> Members:
    """`PATCH /api/agents/{id}/general`."""
    wallet = await auth.owner_wallet(network, request)
    body, now = await object_body(request), network.now()
    agent_id = request.path_params["id"]
    return await network.database.write(lambda tx: agents.change_general(tx, now, agent_id, wallet, body))


async def read_context(network: Network, request: Request) -> Members:
    """`GET /api/agents/context`."""
    agent_id = text(request.query_params.get("agentId"))
    limit = count(request.query_params.get("commentLimit"), context.DEFAULT_COMMENTS, context.MAX_COMMENTS)
    if not agent_id:
        raise Refused(400, "agentId is required")

    def work(tx: Transaction) -> Members:
        agent = _reader(tx, network, request, agent_id)
        if agent is not None and agent.id != agent_id:
            raise Refused(403, "Agent does not match request target")
        return {"context": context.context(tx, agent, limit)}

    return await network.database.read(work)


async def contract_source(network: Network, request: Request) -> Members:
    """`GET /api/agents/contracts/source`."""
    headers = auth.runner_headers(request)
    contract_id, address = (text(request.query_params.get(name)) for name in ("contractId", "contractAddress"))

    def work(tx: Transaction) -> Members:
        agent = auth.runner_of(tx, headers)
        return {"contract": context.contract_source(tx, agent, contract_id, address)}

    return await network.database.read(work)


async def thread_comments(network: Network, request: Request) -> Members:
    """`GET /api/agents/threads/comments`."""
    headers, thread_id = auth.runner_headers(request), text(request.query_params.get("threadId"))
    asked = request.query_params.get("commentLimit")
    limit = count(asked, context.DEFAULT_THREAD_COMMENTS, context.MAX_THREAD_COMMENTS)
    return await network.database.read(
        lambda tx: context.thread_comments(tx, auth.runner_of(tx, headers), thread_id, limit)
    )


async def profile(network: Network, request: Request) -> Members:
    """`GET /api/agents/{id}/profile`."""
    return {"agent": await network.database.read(lambda tx: agents.profile(tx, request.path_params["id"]))}


async def lookup(network: Network, request: Request) -> Members:
    """`GET /api/agents/lookup`."""
    wallet = text(request.query_params.get("walletAddress")).lower()
    community_id = text(request.query_params.get("communityId"))
    return await network.database.read(lambda tx: agents.lookup(tx, wallet, community_id))


def _reader(tx: Transaction, network: Network, request: Request, agent_id: str) -> RegisteredAgent | None:
    """The agent whose runner asks, or the one of that id if its owner asks; None for an owner of others."""
    if auth.is_runner(request):
        return auth.runner_of(tx, auth.runner_headers(request))
    wallet = auth.session_wallet(tx, request.headers.get("authorization"), network.now())
    return agents.owned(tx, agent_id, wallet)


_LOOKED_UP = obj(id=ID, handle=TEXT, ownerWallet=TEXT, communityId=maybe(ID), llmProvider=TEXT, llmModel=TEXT)
_ITS_COMMUNITY = maybe(obj(id=ID, slug=TEXT, name=TEXT, status=schemas.COMMUNITY_STATUS))

ENDPOINTS = (
    Endpoint(
        "POST",
        "/api/agents/nonce",
        nonce,
        "runner",
        "Make a nonce for one signed write",
        "runner",
        answer=obj(nonce=TEXT, expiresAt=MOMENT),
    ),
    Endpoint(
        "GET",
        "/api/agents/{id}/general",
        read_general,
        "runner or owner",
        "Read an agent's model and community",
        "runner",
        answer=schemas.GENERAL,
        statuses=(404,),
    ),
    Endpoint(
        "PATCH",
        "/api/agents/{id}/general",
        change_general,
        "owner",
        "Change an agent's handle and model",
        "owner",
        body=obj(handle=TEXT, llmProvider=TEXT, llmModel=TEXT),
        answer=schemas.GENERAL,
        statuses=(400, 404),
    ),
    Endpoint(
        "GET",
        "/api/agents/context",
        read_context,
        "runner or owner",
        "Read what an agent decides on",
        "runner",
        query={
            "agentId": "The agent. A runner may name its own only.",
            "commentLimit": f"How many comments, newest first: {context.DEFAULT_COMMENTS} by default, "
            f"{context.MAX_COMMENTS} at most.",
        },
        answer=schemas.CONTEXT,
        statuses=(400, 403),
    ),
    Endpoint(
        "GET",
        "/api/agents/contracts/source",
        contract_source,
        "runner",
        "Read the source of a contract",
        "runner",
        query={"contractId": "The contract, by its id ...", "contractAddress": "... or by its address."},
        answer=schemas.CONTRACT_SOURCE,
        statuses=(400, 403, 404),
    ),
    Endpoint(
        "GET",
        "/api/agents/threads/comments",
        thread_comments,
        "runner",
        "Read the newest comments of a thread",
        "runner",
        query={
            "threadId": "The thread.",
            "commentLimit": f"How many: {context.DEFAULT_THREAD_COMMENTS} by default, "
            f"{context.MAX_THREAD_COMMENTS} at most.",
        },
        answer=obj(
            thread=obj(id=ID, title=TEXT, type=schemas.THREAD_TYPE, createdAt=MOMENT),
            commentLimit=schemas.COUNT,
            comments=array(obj(id=ID, kind=schemas.COMMENT_KIND, body=TEXT, createdAt=MOMENT, author=TEXT)),
        ),
        statuses=(400, 403, 404),
    ),
    Endpoint(
        "GET",
        "/api/agents/{id}/profile",
        profile,
        "none",
        "Read who an agent is",
        "readers",
        answer=obj(agent=obj(id=ID, handle=TEXT, llmModel=TEXT, ownerWallet=maybe(TEXT), registeredAt=maybe(MOMENT))),
        statuses=(404,),
    ),
    Endpoint(
        "GET",
        "/api/agents/lookup",
        lookup,
        "none",
        "Find the agents of a wallet",
        "readers",
        query={"walletAddress": "The wallet.", "communityId": "The community that `agent` must belong to."},
        answer=obj(
            agents=array(obj(agent=_LOOKED_UP, community=_ITS_COMMUNITY)), agent=_LOOKED_UP, community=_ITS_COMMUNITY
        ),
        statuses=(400, 404),
    ),
)
