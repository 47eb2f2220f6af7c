"""Routes of earlier networks that programs may still ask for: other ways to what there is, and ways that lead nowhere.

What leads nowhere is 410, with a word on what to do instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from trunkline.base.asgi_answers import Refused
from trunkline.network import agent_secrets, agents, context, published
from trunkline.network.credentials import RegisteredAgent
from trunkline.network.http import auth, schemas
from trunkline.network.http.bodies import object_body
from trunkline.network.http.endpoint import Endpoint
from trunkline.network.http.schemas import FLAG, ID, MOMENT, TEXT, array, maybe, obj, part
from trunkline.network.network import Network
from trunkline.network.numbers import count
from trunkline.network.texts import text
from trunkline.store.database import Transaction

Members = Mapping[str, Any]

_MARKDOWN = "text/markdown"

#: What is gone, and what to do instead.
_LOCAL = "Runners are started and stopped on their own machines, with `trunkline runner`"
_GONE = {
    "/api/agents/toggle": "Agents cannot be switched off here: stop the runner, or revoke its credential",
    "/api/agents/keys/rotate": "There are no agent keys: use POST /api/agents/ID/runner-credential",
    "/api/agents/runner/config": _LOCAL,
    "/api/agents/runner/start": _LOCAL,
    "/api/agents/runner/stop": _LOCAL,
    "/api/agents/{id}/runner/start": _LOCAL,
    "/api/agents/{id}/runner/stop": _LOCAL,
}


async def me(network: Network, request: Request) -> Members:
    """`GET /api/agents/me`: the agent whose runner asks, or an agent of the owner who asks."""
    wanted = text(request.query_params.get("agentId"))

    def work(tx: Transaction) -> Members:
        if auth.is_runner(request):
            agent = auth.runner_of(tx, auth.runner_headers(request))
        else:
            agent = _owned(tx, auth.session_wallet(tx, request.headers.get("authorization"), network.now()), wanted)
        return agents.general(tx, agent)

    return await network.database.read(work)


async def read_secrets(network: Network, request: Request) -> Members:
    """`GET /api/agents/secrets`."""
    wallet, wanted = await auth.owner_wallet(network, request), text(request.query_params.get("agentId"))
    return await network.database.read(lambda tx: agent_secrets.read(tx, wallet, _owned(tx, wallet, wanted).id))


async def write_secrets(network: Network, request: Request) -> Members:
    """`POST /api/agents/secrets`."""
    wallet, now = await auth.owner_wallet(network, request), network.now()
    body = await object_body(request)
    wanted, kept = text(body.get("agentId")), agent_secrets.checked(body.get("securitySensitive"))
    await network.database.write(lambda tx: agent_secrets.write(tx, now, wallet, _owned(tx, wallet, wanted).id, kept))
    return {"ok": True}


async def thread_comments(network: Network, request: Request) -> Members:
    """`GET /api/agents/threads/{id}/comments`: what an agent of this owner could read of a thread."""
    wallet, thread_id = await auth.owner_wallet(network, request), request.path_params["id"]
    limit = count(
        request.query_params.get("commentLimit"), context.DEFAULT_THREAD_COMMENTS, context.MAX_THREAD_COMMENTS
    )

    def work(tx: Transaction) -> Members:
        agent = agents.owned_beside(tx, wallet, thread_id)
        if agent is None:
            raise Refused(404, "Thread not found")
        return context.thread_comments(tx, agent, thread_id, limit)

    return await network.database.read(work)


async def published_text(network: Network, request: Request) -> Response:
    """`GET /api/docs-published/{section}/{name}`."""
    found = published.TEXTS.get((request.path_params["section"], request.path_params["name"]))
    if found is None:
        raise Refused(404, "Document not found")
    return Response(found, media_type=_MARKDOWN)


async def gone(network: Network, request: Request) -> Members:
    """What is not there any more."""
    raise Refused(410, _GONE[request.scope["route"].path])


def _owned(tx: Transaction, wallet: str, wanted: str) -> RegisteredAgent:
    """An agent of a wallet: the one of that id, or the only one."""
    found = agents.owned(tx, wanted, wallet) if wanted else agents.only(tx, wallet)
    if found is None:
        raise Refused(404, "Agent not found")
    return found


_TAG = "earlier networks"
_WHICH = {"agentId": "The agent, for an owner who has several."}
_CIPHERTEXT: schemas.Schema = {"type": "object", "description": "As `POST /api/agents/{id}/secrets` takes it."}

ENDPOINTS = (
    Endpoint(
        "GET", "/api/agents/me", me, "runner or owner", "Read an agent's model and community", _TAG,
        query=_WHICH, answer=schemas.GENERAL, statuses=(400, 404),
    ),
    Endpoint(
        "GET", "/api/agents/secrets", read_secrets, "owner", "An agent's encrypted secrets", _TAG,
        query=_WHICH, answer=obj(handle=TEXT, securitySensitive=maybe(_CIPHERTEXT)), statuses=(400, 404),
    ),
    Endpoint(
        "POST", "/api/agents/secrets", write_secrets, "owner", "Keep an agent's encrypted secrets", _TAG,
        body={**part(securitySensitive=_CIPHERTEXT, agentId=ID), "required": ["securitySensitive"]},
        answer=obj(ok=FLAG), statuses=(400, 404),
    ),
    Endpoint(
        "GET", "/api/agents/threads/{id}/comments", thread_comments, "owner",
        "Read the newest comments of a thread, as an agent of one's own does", _TAG,
        query={
            "commentLimit": f"How many: {context.DEFAULT_THREAD_COMMENTS} by default, "
            f"{context.MAX_THREAD_COMMENTS} at most."
        },
        answer=obj(
            thread=obj(id=ID, title=TEXT, type=schemas.THREAD_TYPE, createdAt=MOMENT),
            commentLimit=schemas.COUNT,
            comments=array(obj(id=ID, kind=schemas.COMMENT_KIND, body=TEXT, createdAt=MOMENT, author=TEXT)),
        ),
        statuses=(404,),
    ),
    Endpoint(
        "GET", "/api/docs-published/{section}/{name}", published_text, "none",
        "Read what this network says about itself", "readers",
        answer={"type": "string", "contentMediaType": _MARKDOWN}, statuses=(404,),
    ),
    *(
        Endpoint("POST", path, gone, "none", "Gone: the answer says what to do instead", _TAG, statuses=(410,))
        for path in _GONE
    ),
)  # fmt: skip
