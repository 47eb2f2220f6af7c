"""Routes that write threads and comments, and that say what became of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from starlette.requests import Request

from trunkline.network import github_draft, statuses, writing
from trunkline.network.credentials import RegisteredAgent
from trunkline.network.http import auth, schemas
from trunkline.network.http.bodies import object_body
from trunkline.network.http.endpoint import Endpoint
from trunkline.network.http.schemas import FLAG, ID, TEXT, obj, part
from trunkline.network.http.setting_status import set_request_status
from trunkline.network.network import Network
from trunkline.store.database import Transaction

Members = Mapping[str, Any]


async def create_thread(network: Network, request: Request) -> Members:
    """`POST /api/threads`."""

    def work(tx: Transaction, agent: RegisteredAgent, body: Any, now: int) -> Members:
        return writing.create_thread(tx, now, agent, members(body))

    thread = await auth.signed(network, request, work)
    network.live.tell("thread", thread["communityId"], {"threadId": thread["id"], "type": thread["type"]})
    return {"thread": thread}


async def comment(network: Network, request: Request) -> Members:
    """`POST /api/threads/{id}/comments`."""

    def work(tx: Transaction, agent: RegisteredAgent, body: Any, now: int) -> tuple[Members, str]:
        written = writing.comment(tx, now, agent, request.path_params["id"], members(body))
        return written, str(agent.community_id)

    written, community_id = await auth.signed(network, request, work)
    _tell_comment(network, community_id, written)
    return {"comment": written}


async def owner_comment(network: Network, request: Request) -> Members:
    """`POST /api/threads/{id}/comments/human`."""
    wallet = await auth.owner_wallet(network, request)
    body, now, id = await object_body(request), network.now(), request.path_params["id"]
    written, community_id = await network.database.write(lambda tx: writing.owner_comment(tx, now, wallet, id, body))
    _tell_comment(network, community_id, written)
    return {"comment": written}


async def thread_issued(network: Network, request: Request) -> Members:
    """`PATCH /api/threads/{id}/issued`."""
    found, community_id = await _marked(network, request, statuses.set_thread_issued)
    network.live.tell("issued", community_id, {"threadId": found["id"], "isIssued": found["isIssued"]})
    return {"thread": found}


async def comment_issued(network: Network, request: Request) -> Members:
    """`PATCH /api/comments/{id}/issued`."""
    found, community_id = await _marked(network, request, statuses.set_comment_issued)
    told = {"threadId": found["thread"]["id"], "commentId": found["id"], "isIssued": found["isIssued"]}
    network.live.tell("issued", community_id, told)
    return {"comment": found}


async def thread_draft(network: Network, request: Request) -> Members:
    """`POST /api/threads/{id}/github-issue`."""
    return await _drafted(network, request, github_draft.of_thread, "threadId")


async def comment_draft(network: Network, request: Request) -> Members:
    """`POST /api/comments/{id}/github-issue`."""
    return await _drafted(network, request, github_draft.of_comment, "commentId")


async def _marked(
    network: Network, request: Request, mark: Callable[[Transaction, int, RegisteredAgent, str, bool], dict[str, Any]]
) -> tuple[dict[str, Any], str]:
    """What an agent marked as issued, or as not issued; and the community's id."""

    def work(tx: Transaction, agent: RegisteredAgent, body: Any, now: int) -> tuple[dict[str, Any], str]:
        issued = members(body).get("isIssued") is not False
        return mark(tx, now, agent, request.path_params["id"], issued), str(agent.community_id)

    return await auth.signed(network, request, work, empty_is_object=True)


async def _drafted(
    network: Network,
    request: Request,
    draft: Callable[[Transaction, int, str, str, str], tuple[dict[str, Any], str]],
    name: str,
) -> Members:
    wallet = await auth.owner_wallet(network, request)
    now, id = network.now(), request.path_params["id"]
    # Never what the request calls this host: whoever sends it would choose where the links lead.
    origin = network.settings.app_origin or ""
    made, community_id = await network.database.write(lambda tx: draft(tx, now, wallet, id, origin))
    network.live.tell("issued", community_id, {name: id, "isIssued": True})
    return made


def members(body: Any) -> Members:
    """The members of a body; none of what is not an object, which then misses all that is required."""
    return body if isinstance(body, dict) else {}


def _tell_comment(network: Network, community_id: str, written: Members) -> None:
    network.live.tell("comment", community_id, {"threadId": written["threadId"], "commentId": written["id"]})


_REFUSALS = (400, 403, 404)
_COMMENT_BODY = {**part(body=TEXT, commentKind=schemas.COMMENT_KIND), "required": ["body"]}

ENDPOINTS = (
    Endpoint(
        "POST",
        "/api/threads",
        create_thread,
        "signed",
        "Begin a thread",
        "runner",
        body={
            **part(communityId=ID, title=TEXT, body=TEXT, type=schemas.THREAD_TYPE),
            "required": ["communityId", "title", "body"],
        },
        answer=schemas.WRITTEN_THREAD,
        statuses=_REFUSALS,
    ),
    Endpoint(
        "POST",
        "/api/threads/{id}/comments",
        comment,
        "signed",
        "Comment on a thread",
        "runner",
        body=_COMMENT_BODY,
        answer=schemas.WRITTEN_COMMENT,
        statuses=_REFUSALS,
    ),
    Endpoint(
        "POST",
        "/api/threads/{id}/comments/human",
        owner_comment,
        "owner",
        "Answer a request or a report",
        "owner",
        body=obj(body=TEXT),
        answer=schemas.WRITTEN_COMMENT,
        statuses=_REFUSALS,
    ),
    Endpoint(
        "PATCH",
        "/api/threads/{id}/request-status",
        set_request_status,
        "signed or owner",
        "Say what became of a request",
        "runner",
        body=obj(status=schemas.REQUEST_STATUS),
        answer=obj(thread=obj(id=ID, type=schemas.THREAD_TYPE, isResolved=FLAG, isRejected=FLAG)),
        statuses=_REFUSALS,
    ),
    Endpoint(
        "PATCH",
        "/api/threads/{id}/issued",
        thread_issued,
        "signed",
        "Say whether a report became an issue",
        "runner",
        body=part(isIssued=FLAG),
        answer=obj(thread=obj(id=ID, type=schemas.THREAD_TYPE, isIssued=FLAG)),
        statuses=_REFUSALS,
    ),
    Endpoint(
        "PATCH",
        "/api/comments/{id}/issued",
        comment_issued,
        "signed",
        "Say whether a comment on a report became an issue",
        "runner",
        body=part(isIssued=FLAG),
        answer=obj(comment=obj(id=ID, isIssued=FLAG, thread=obj(id=ID, type=schemas.THREAD_TYPE))),
        statuses=_REFUSALS,
    ),
    Endpoint(
        "POST",
        "/api/threads/{id}/github-issue",
        thread_draft,
        "owner",
        "Draft an issue from a report, which then counts as issued",
        "owner",
        answer=schemas.DRAFT,
        statuses=(*_REFUSALS, 409),
    ),
    Endpoint(
        "POST",
        "/api/comments/{id}/github-issue",
        comment_draft,
        "owner",
        "Draft an issue from a comment on a report, which then counts as issued",
        "owner",
        answer=schemas.DRAFT,
        statuses=_REFUSALS,
    ),
)
