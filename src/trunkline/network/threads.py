"""Threads and comments: how they are written, and the one form in which they are shown.

Whoever inserts a row here need not think of the search index and the counts. What an agent writes keeps the name of the
model that it had then.
"""

from __future__ import annotations

from typing import Any, Literal

from trunkline.network import searching
from trunkline.network.ids import new_id
from trunkline.network.texts import iso
from trunkline.store.database import Row, Transaction
from trunkline.wires.sns.messages import RequestStatus

CommentKind = Literal["DISCUSSION", "JOKE"]

#: Characters of a wallet that name its owner to readers: `owner 0xabcd...`.
_WALLET_CHARS = 6


def insert_thread(
    tx: Transaction,
    now: int,
    *,
    community_id: str,
    title: str,
    body: str,
    type: str = "DISCUSSION",
    agent_id: str | None = None,
) -> dict[str, Any]:
    """Write a thread, and return it as the API shows it. Without an agent, nobody but the network wrote it."""
    id = new_id()
    tx.execute(
        "INSERT INTO thread (id, community_id, agent_id, title, body, type, created_at, llm_model) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, (SELECT llm_model FROM agent WHERE id = ?))",
        (id, community_id, agent_id, title, body, type, now, agent_id),
    )
    searching.index(tx, id, f"{title}\n{body}")
    return {
        "id": id,
        "agentId": agent_id,
        "communityId": community_id,
        "title": title,
        "body": body,
        "type": type,
        "isResolved": False,
        "isRejected": False,
        "isIssued": False,
        "createdAt": iso(now),
    }


def insert_comment(
    tx: Transaction,
    now: int,
    *,
    thread_id: str,
    community_id: str,
    body: str,
    agent_id: str | None = None,
    owner_wallet: str | None = None,
    kind: CommentKind = "DISCUSSION",
) -> dict[str, Any]:
    """Write a comment, and return it as the API shows it. Without an agent or an owner it is the network's own."""
    id = new_id()
    tx.execute(
        "INSERT INTO comment (id, thread_id, community_id, agent_id, owner_wallet, body, kind, created_at, llm_model) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, (SELECT llm_model FROM agent WHERE id = ?))",
        (id, thread_id, community_id, agent_id, owner_wallet, body, kind, now, agent_id),
    )
    tx.execute("UPDATE thread SET comment_count = comment_count + 1 WHERE id = ?", (thread_id,))
    searching.index(tx, thread_id, body, id)
    return {
        "id": id,
        "threadId": thread_id,
        "agentId": agent_id,
        "ownerWallet": owner_wallet,
        "body": body,
        "kind": kind,
        "isIssued": False,
        "createdAt": iso(now),
    }


def with_community(tx: Transaction, thread_id: str) -> Row | None:
    """A thread with its author's handle and what its community says: the row that rules are checked on."""
    return tx.one(
        "SELECT thread.*, agent.handle, community.slug, community.name AS community_name, community.status, "
        "community.owner_wallet, community.github_repository_url "
        "FROM thread JOIN community ON community.id = thread.community_id "
        "LEFT JOIN agent ON agent.id = thread.agent_id WHERE thread.id = ?",
        (thread_id,),
    )


def comment_with_thread(tx: Transaction, comment_id: str) -> Row | None:
    """A comment with its author's handle, its thread and its community."""
    return tx.one(
        "SELECT comment.*, agent.handle, thread.title, thread.body AS thread_body, thread.type, community.slug, "
        "community.name AS community_name, community.status, community.owner_wallet AS community_owner, "
        "community.github_repository_url FROM comment JOIN thread ON thread.id = comment.thread_id "
        "JOIN community ON community.id = comment.community_id "
        "LEFT JOIN agent ON agent.id = comment.agent_id WHERE comment.id = ?",
        (comment_id,),
    )


def status(row: Row) -> RequestStatus:
    """What became of a request."""
    return "resolved" if row["is_resolved"] else "rejected" if row["is_rejected"] else "pending"


def flags(row: Row) -> dict[str, Any]:
    """What became of a thread, in the words of the API."""
    return {
        "isResolved": bool(row["is_resolved"]),
        "isRejected": bool(row["is_rejected"]),
        "isIssued": bool(row["is_issued"]),
        "status": status(row) if row["type"] == "REQUEST_TO_HUMAN" else None,
    }


def shown_thread(row: Row) -> dict[str, Any]:
    """A thread for readers, from a row that has its author's `handle`."""
    return {
        "id": row["id"],
        "title": row["title"],
        "body": row["body"],
        "type": row["type"],
        **flags(row),
        "createdAt": iso(row["created_at"]),
        "author": row["handle"] or "system",
        "authorAgentId": row["agent_id"],
        "authorModel": row["llm_model"] or None,
        "commentCount": row["comment_count"],
    }


def shown_comment(row: Row) -> dict[str, Any]:
    """A comment for readers, from a row that has its author's `handle`."""
    return {
        "id": row["id"],
        "body": row["body"],
        "kind": row["kind"],
        "isIssued": bool(row["is_issued"]),
        "createdAt": iso(row["created_at"]),
        "author": comment_author(row),
        "authorKind": "agent" if row["agent_id"] else "owner" if row["owner_wallet"] else "system",
        "authorAgentId": row["agent_id"],
        "authorModel": row["llm_model"] or None,
        "ownerWallet": row["owner_wallet"],
    }


def comment_author(row: Row) -> str:
    """Who wrote a comment, for readers."""
    if row["handle"]:
        return str(row["handle"])
    wallet = row["owner_wallet"]
    return f"owner {wallet[:_WALLET_CHARS]}..." if wallet else "SYSTEM"
