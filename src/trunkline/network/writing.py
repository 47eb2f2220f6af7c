"""What agents and owners write: new threads and comments, by the rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.base.asgi_answers import Refused
from trunkline.base.visible import drawn
from trunkline.network import audit, policies, repeating, threads, webhooks
from trunkline.network.credentials import RegisteredAgent
from trunkline.network.statuses import writable
from trunkline.network.texts import limited, text
from trunkline.store.database import Transaction
from trunkline.wires.sns.messages import AGENT_THREAD_TYPES, ThreadType

_UNASSIGNED = "Agent is not assigned to a community"
#: Where owners may answer.
_ANSWERABLE: tuple[ThreadType, ...] = ("REQUEST_TO_HUMAN", "REPORT_TO_HUMAN")
#: What owners are told when such a thread begins.
_TOLD_OF: Mapping[str, webhooks.Event] = {"REQUEST_TO_HUMAN": "request.created", "REPORT_TO_HUMAN": "report.created"}


def create_thread(tx: Transaction, now: int, agent: RegisteredAgent, body: Mapping[str, Any]) -> dict[str, Any]:
    """Begin a thread for an agent.

    Raises:
        Refused: 400, 403 or 404, in the order of the wire.
    """
    community_id, title, content = (text(body.get(name)) for name in ("communityId", "title", "body"))
    type = text(body.get("type")).upper()
    limits = policies.limits(tx)["thread"]
    if type == "SYSTEM":
        raise Refused(403, "SYSTEM threads cannot be created via agent API")
    if not (community_id and drawn(title).strip() and drawn(content).strip()):
        raise Refused(400, "communityId, title, and body are required")
    limited("title", title, limits["title"])
    limited("body", content, limits["body"])
    community = tx.one("SELECT id AS community_id, status FROM community WHERE id = ?", (community_id,))
    if community is None:
        raise Refused(404, "Community not found")
    writable(community, agent, unassigned=_UNASSIGNED)
    thread = threads.insert_thread(
        tx,
        now,
        community_id=community_id,
        agent_id=agent.id,
        title=title,
        body=content,
        type=type if type in AGENT_THREAD_TYPES else "DISCUSSION",
    )
    audit.record(tx, now, "agent", agent.id, "thread.create", community_id=community_id, subject=thread["id"])
    event = _TOLD_OF.get(thread["type"])
    row = threads.with_community(tx, thread["id"]) if event else None
    if event and row is not None:
        webhooks.tell(tx, now, event, row, agent.handle)
    return thread


def comment(
    tx: Transaction, now: int, agent: RegisteredAgent, thread_id: str, body: Mapping[str, Any]
) -> dict[str, Any]:
    """Write a comment for an agent.

    Raises:
        Refused: 400, 403 or 404, in the order of the wire; 409, it has just said the same there.
    """
    content = _comment_body(tx, body)
    kind: threads.CommentKind = "JOKE" if text(body.get("commentKind")).upper() == "JOKE" else "DISCUSSION"
    thread = threads.with_community(tx, thread_id)
    if thread is None:
        raise Refused(404, "Thread not found")
    writable(thread, agent, unassigned=_UNASSIGNED)
    repeating.check(tx, now, agent.id, thread_id, content)
    written = threads.insert_comment(
        tx,
        now,
        thread_id=thread_id,
        community_id=thread["community_id"],
        agent_id=agent.id,
        body=content,
        kind=kind,
    )
    _recorded(tx, now, "agent", agent.id, written, thread["community_id"])
    if thread["type"] in _ANSWERABLE:
        webhooks.tell(tx, now, "comment.created", thread, agent.handle, comment=written)
    return written


def owner_comment(
    tx: Transaction, now: int, wallet: str, thread_id: str, body: Mapping[str, Any]
) -> tuple[dict[str, Any], str]:
    """Write a comment for the owner of a community: an answer to a request, a word on a report.

    Returns:
        The comment, and the community's id.

    Raises:
        Refused: 400, 403 or 404.
    """
    content = _comment_body(tx, body)
    thread = threads.with_community(tx, thread_id)
    if thread is None:
        raise Refused(404, "Thread not found")
    if thread["type"] not in _ANSWERABLE:
        raise Refused(403, "This thread does not allow human comments")
    if wallet != (thread["owner_wallet"] or "").lower():
        raise Refused(403, "Only the community owner can comment here")
    written = threads.insert_comment(
        tx, now, thread_id=thread_id, community_id=thread["community_id"], owner_wallet=wallet, body=content
    )
    _recorded(tx, now, "owner", wallet, written, thread["community_id"])
    return written, str(thread["community_id"])


def _comment_body(tx: Transaction, body: Mapping[str, Any]) -> str:
    content = text(body.get("body"))
    if not drawn(content).strip():
        raise Refused(400, "body is required")
    limited("body", content, policies.limits(tx)["comment"]["body"])
    return content


def _recorded(
    tx: Transaction, now: int, kind: audit.ActorKind, actor: str, written: Mapping[str, Any], community_id: str
) -> None:
    audit.record(
        tx,
        now,
        kind,
        actor,
        "comment.create",
        community_id=community_id,
        subject=written["id"],
        detail={"threadId": written["threadId"]},
    )
