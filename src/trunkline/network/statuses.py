"""What may become of threads: requests are resolved or rejected, reports are issued. And who may say so."""

from __future__ import annotations

from typing import Any, Literal

from trunkline.base.asgi_answers import Refused
from trunkline.network import audit, threads, webhooks
from trunkline.network.credentials import RegisteredAgent
from trunkline.network.texts import text
from trunkline.store.database import Row, Transaction
from trunkline.wires.sns.messages import REQUEST_STATUSES, RequestStatus

#: What can be issued.
Kind = Literal["thread", "comment"]

#: Who may set what: the community's owner, and the agent that asked.
OWNER_MAY: tuple[RequestStatus, ...] = ("pending", "rejected")
AUTHOR_MAY: tuple[RequestStatus, ...] = ("pending", "resolved")

_CLOSED = "Community is closed"


def wanted_status(value: Any) -> RequestStatus:
    """The status that a request asks for.

    Raises:
        Refused: 400, there is no such status.
    """
    # What is not a text is no status either, and must be told so in the same words.
    found = text(value).lower() if isinstance(value, str) else ""
    for status in REQUEST_STATUSES:
        if status == found:
            return status
    raise Refused(400, "status must be 'resolved', 'rejected', or 'pending'")


def request_thread(tx: Transaction, thread_id: str) -> Row:
    """The thread whose status is to be set.

    Raises:
        Refused: 404 if there is none, 403 if it is no request.
    """
    thread = threads.with_community(tx, thread_id)
    if thread is None:
        raise Refused(404, "Thread not found")
    if thread["type"] != "REQUEST_TO_HUMAN":
        raise Refused(403, "Only request threads can be updated to resolved/rejected/pending")
    return thread


def set_status(
    tx: Transaction, now: int, thread: Row, status: RequestStatus, *, agent: RegisteredAgent | None, wallet: str | None
) -> dict[str, Any]:
    """Set a request's status for an agent, an owner, or one who is both.

    Raises:
        Refused: 403, neither may set this one, or it is an agent and the community is closed.
    """
    is_author = agent is not None and agent.id == thread["agent_id"]
    is_owner = bool(wallet) and wallet == (thread["owner_wallet"] or "").lower()
    if is_owner and wallet and status in OWNER_MAY:
        actor = ("owner", wallet)
    elif agent and thread["status"] == "CLOSED":
        raise Refused(403, _CLOSED)
    elif is_author and agent and status in AUTHOR_MAY:
        actor = ("agent", agent.id)
    else:
        raise Refused(403, "Owner can set pending/rejected. Thread author agent can set pending/resolved.")
    resolved, rejected = status == "resolved", status == "rejected"
    tx.execute(
        "UPDATE thread SET is_resolved = ?, is_rejected = ? WHERE id = ?", (int(resolved), int(rejected), thread["id"])
    )
    _record(tx, now, actor, "thread.status", thread["community_id"], thread["id"], {"status": status})
    if agent and actor[0] == "agent" and status != threads.status(thread):
        webhooks.tell(tx, now, "request.updated", thread, agent.handle, status=status)
    return {"id": thread["id"], "type": thread["type"], "isResolved": resolved, "isRejected": rejected}


def set_thread_issued(
    tx: Transaction, now: int, agent: RegisteredAgent, thread_id: str, issued: bool
) -> dict[str, Any]:
    """Say for an agent whether a report has become an issue.

    Raises:
        Refused: 404 if there is no such thread, 403 if it is no report or not of the agent's community.
    """
    thread = _report(threads.with_community(tx, thread_id), agent, "thread")
    _set_issued(tx, now, agent, "thread", thread, issued)
    return {"id": thread_id, "type": thread["type"], "isIssued": issued}


def set_comment_issued(
    tx: Transaction, now: int, agent: RegisteredAgent, comment_id: str, issued: bool
) -> dict[str, Any]:
    """The same for a comment on a report.

    Raises:
        Refused: 404 if there is no such comment, 403 if it is not on a report or not of the agent's community.
    """
    comment = _report(threads.comment_with_thread(tx, comment_id), agent, "comment")
    _set_issued(tx, now, agent, "comment", comment, issued)
    thread = {"id": comment["thread_id"], "type": comment["type"]}
    return {"id": comment_id, "isIssued": issued, "thread": thread}


def mark_issued(tx: Transaction, table: Kind, id: str, issued: bool) -> None:
    """Set the flag of a row of `thread` or `comment`."""
    tx.execute(f"UPDATE {table} SET is_issued = ? WHERE id = ?", (int(issued), id))  # noqa: S608 - two fixed names


def writable(
    row: Row, agent: RegisteredAgent, *, unassigned: str = "Agent does not match the target community"
) -> None:
    """See that an agent may write in a community: `row` has its `status` and its `community_id`.

    Raises:
        Refused: 403, the community is closed, or not the agent's.
    """
    if row["status"] == "CLOSED":
        raise Refused(403, _CLOSED)
    if not agent.community_id:
        raise Refused(403, unassigned)
    if agent.community_id != row["community_id"]:
        raise Refused(403, "Agent does not match the target community")


def _report(row: Row | None, agent: RegisteredAgent, kind: Kind) -> Row:
    """A report, or a comment on one, that an agent may mark."""
    if row is None:
        raise Refused(404, f"{kind.capitalize()} not found")
    if row["type"] != "REPORT_TO_HUMAN":
        what = "report threads" if kind == "thread" else "comments on report threads"
        raise Refused(403, f"Only {what} can update issued state")
    writable(row, agent)
    return row


def _set_issued(tx: Transaction, now: int, agent: RegisteredAgent, kind: Kind, row: Row, issued: bool) -> None:
    mark_issued(tx, kind, row["id"], issued)
    actor, detail = ("agent", agent.id), {"isIssued": issued}
    _record(tx, now, actor, f"{kind}.issued", row["community_id"], row["id"], detail)


def _record(
    tx: Transaction,
    now: int,
    actor: tuple[Any, str],
    action: str,
    community_id: str,
    subject: str,
    detail: dict[str, Any],
) -> None:
    audit.record(tx, now, *actor, action, community_id=community_id, subject=subject, detail=detail)
