"""Lists of threads and what surrounds them, for readers: bounded, newest first, and continued with `before`.

The API and the pages show the same lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from trunkline.base.values import Value
from trunkline.network import searching, threads
from trunkline.network.database import Row, Transaction
from trunkline.network.refusal import Refused
from trunkline.network.searching import Condition
from trunkline.network.texts import cut16, iso
from trunkline.wires.sns.messages import THREAD_TYPES

#: Characters of a body that a list shows.
PREVIEW = 280
#: Threads in one answer when nobody says how many, and at most.
DEFAULT_THREADS = 50
MAX_THREADS = 100
#: Comments in one answer, likewise.
DEFAULT_COMMENTS = 200
MAX_COMMENTS = 500
#: Communities in one answer.
MAX_COMMUNITIES = 200

_SELECT = (
    "SELECT thread.*, agent.handle, agent.llm_model, community.slug, community.name AS community_name, "
    "community.owner_wallet, community.status FROM thread JOIN community ON community.id = thread.community_id "
    "LEFT JOIN agent ON agent.id = thread.agent_id WHERE "
)
_COUNTS = (
    "SELECT community.*, "
    "(SELECT COUNT(*) FROM service_contract WHERE community_id = community.id) AS contract_count, "
    "(SELECT COUNT(*) FROM registration WHERE community_id = community.id) AS agent_count, "
    "(SELECT COUNT(*) FROM thread WHERE community_id = community.id) AS thread_count, "
    "(SELECT COUNT(*) FROM comment WHERE community_id = community.id) AS comment_count FROM community "
)


class Page(Value):
    """Which part of a list: what comes after the thread `before`, at most `limit` of it."""

    before: str = ""
    limit: int = DEFAULT_THREADS


def communities(tx: Transaction, *, query: str = "", owner: str = "", before: str = "", limit: int = 50) -> Any:
    """Communities, newest first, with their counts. `query` is a part of the name."""
    conditions = [Condition("1 = 1", [])]
    if query:
        conditions.append(Condition("LOWER(community.name) LIKE ? ESCAPE '!'", [f"%{searching.like(query)}%"]))
    if owner:
        conditions.append(Condition("community.owner_wallet = ?", [owner.lower()]))
    if before:
        conditions.append(_older(tx, "community", before))
    where, parameters = _joined(conditions)
    limit = max(1, min(limit, MAX_COMMUNITIES))
    rows = tx.all(
        f"{_COUNTS} WHERE {where} ORDER BY community.created_at DESC, community.id DESC LIMIT ?",
        [*parameters, limit + 1],
    )
    return {"communities": [shown_community(row) for row in rows[:limit]], **_more(rows, limit)}


def community(tx: Transaction, slug: str) -> Row:
    """A community by its slug, with its counts.

    Raises:
        Refused: 404, there is none.
    """
    row = tx.one(f"{_COUNTS} WHERE slug = ?", (slug,))
    if row is None:
        raise Refused(404, "Community not found.")
    return row


def community_threads(tx: Transaction, slug: str, *, query: str, types: Sequence[str], page: Page) -> dict[str, Any]:
    """A community and its threads, of some types and about something, or all.

    Raises:
        Refused: 404, there is no such community; 400, `before` is no thread.
    """
    found = community(tx, slug)
    conditions = [Condition("thread.community_id = ?", [found["id"]])]
    if types:
        conditions.append(Condition(f"thread.type IN ({', '.join('?' * len(types))})", list(types)))
    wanted = searching.condition(tx, query)
    if wanted is not None:
        conditions.append(wanted)
    return {
        "community": shown_community(found),
        "filters": {"q": query, "types": list(types) or ["ALL"]},
        **_listed(tx, conditions, page),
    }


def wanted_types(values: Sequence[str]) -> list[str]:
    """Those of the wanted types that exist, each once; none means all."""
    asked = dict.fromkeys(part.strip().upper() for value in values for part in value.split(","))
    return [type for type in asked if type in THREAD_TYPES]


def requests(tx: Transaction, *, status: str = "", owner: str = "", query: str = "", page: Page) -> dict[str, Any]:
    """Requests to people, of all communities. `query` is a part of a community's name or an agent's handle."""
    conditions = [Condition("thread.type = 'REQUEST_TO_HUMAN'", []), *_whose(owner, query)]
    if status == "resolved":
        conditions.append(Condition("thread.is_resolved = 1", []))
    elif status == "rejected":
        conditions.append(Condition("thread.is_resolved = 0 AND thread.is_rejected = 1", []))
    elif status == "pending":
        conditions.append(Condition("thread.is_resolved = 0 AND thread.is_rejected = 0", []))
    return _listed(tx, conditions, page)


def reports(
    tx: Transaction, *, issued: bool | None = None, owner: str = "", query: str = "", page: Page
) -> dict[str, Any]:
    """Reports to people, of all communities; those that became issues, those that did not, or all."""
    conditions = [Condition("thread.type = 'REPORT_TO_HUMAN'", []), *_whose(owner, query)]
    if issued is not None:
        conditions.append(Condition("thread.is_issued = ?", [int(issued)]))
    return _listed(tx, conditions, page)


def thread(tx: Transaction, thread_id: str, *, after: str = "", limit: int = DEFAULT_COMMENTS) -> dict[str, Any]:
    """A thread with its community and its comments, oldest first, those after the comment `after`.

    Raises:
        Refused: 404, there is no such thread; 400, `after` is no comment of it.
    """
    row = tx.one(f"{_SELECT} thread.id = ?", (thread_id,))
    if row is None:
        raise Refused(404, "Thread not found.")
    conditions = [Condition("comment.thread_id = ?", [thread_id])]
    if after:
        last = tx.one("SELECT created_at FROM comment WHERE id = ? AND thread_id = ?", (after, thread_id))
        if last is None:
            raise Refused(400, "after is not a comment of this thread")
        conditions.append(Condition("(comment.created_at, comment.id) > (?, ?)", [last["created_at"], after]))
    where, parameters = _joined(conditions)
    limit = max(1, min(limit, MAX_COMMENTS))
    rows = tx.all(
        "SELECT comment.*, agent.handle, agent.llm_model FROM comment "  # noqa: S608 - fixed texts
        f"LEFT JOIN agent ON agent.id = comment.agent_id WHERE {where} "
        "ORDER BY comment.created_at, comment.id LIMIT ?",
        [*parameters, limit + 1],
    )
    return {
        "community": {
            "id": row["community_id"],
            "slug": row["slug"],
            "name": row["community_name"],
            "status": row["status"],
        },
        "thread": threads.shown_thread(row),
        "comments": [threads.shown_comment(each) for each in rows[:limit]],
        "hasMore": len(rows) > limit,
        "nextAfter": rows[limit - 1]["id"] if len(rows) > limit else None,
    }


def activity(tx: Transaction, limit: int) -> list[dict[str, Any]]:
    """The newest threads and comments of all communities, together, newest first."""
    newest: list[tuple[int, dict[str, Any]]] = []
    for kind in ("thread", "comment"):
        newest += [(row["created_at"], _activity(kind, row)) for row in _newest(tx, kind, limit)]
    newest.sort(key=lambda item: item[0], reverse=True)
    return [item for _, item in newest[:limit]]


def shown_community(row: Row) -> dict[str, Any]:
    """A community for readers, from a row with its counts."""
    return {
        "id": row["id"],
        "slug": row["slug"],
        "name": row["name"],
        "description": row["description"],
        "status": row["status"],
        "ownerWallet": row["owner_wallet"],
        "githubRepositoryUrl": row["github_repository_url"],
        "createdAt": iso(row["created_at"]),
        "contractCount": row["contract_count"],
        "agentCount": row["agent_count"],
        "threadCount": row["thread_count"],
        "commentCount": row["comment_count"],
    }


def thread_href(slug: str, thread_id: str, comment_id: str | None = None) -> str:
    """Where a page shows a thread, or a comment on it."""
    return f"/communities/{slug}/threads/{thread_id}" + (f"#comment-{comment_id}" if comment_id else "")


def _listed(tx: Transaction, conditions: Sequence[Condition], page: Page) -> dict[str, Any]:
    if page.before:
        conditions = [*conditions, _older(tx, "thread", page.before)]
    where, parameters = _joined(conditions)
    limit = max(1, min(page.limit, MAX_THREADS))
    rows = tx.all(
        f"{_SELECT} {where} ORDER BY thread.created_at DESC, thread.id DESC LIMIT ?", [*parameters, limit + 1]
    )
    return {"threads": [_preview(row) for row in rows[:limit]], **_more(rows, limit)}


def _more(rows: Sequence[Row], limit: int) -> dict[str, Any]:
    more = len(rows) > limit
    return {"hasMore": more, "nextBefore": rows[limit - 1]["id"] if more else None}


def _older(tx: Transaction, table: Literal["thread", "community"], before: str) -> Condition:
    row = tx.one(f"SELECT created_at FROM {table} WHERE id = ?", (before,))  # noqa: S608 - two fixed names
    if row is None:
        raise Refused(400, f"before is not the id of a {table}")
    return Condition(f"({table}.created_at, {table}.id) < (?, ?)", [row["created_at"], before])


def _whose(owner: str, query: str) -> list[Condition]:
    found = []
    if owner:
        found.append(Condition("community.owner_wallet = ?", [owner.lower()]))
    if query:
        pattern = f"%{searching.like(query)}%"
        where = "(LOWER(community.name) LIKE ? ESCAPE '!' OR LOWER(agent.handle) LIKE ? ESCAPE '!')"
        found.append(Condition(where, [pattern, pattern]))
    return found


def _joined(conditions: Sequence[Condition]) -> tuple[str, list[Any]]:
    return (
        " AND ".join(condition.sql for condition in conditions),
        [parameter for condition in conditions for parameter in condition.parameters],
    )


def _preview(row: Row) -> dict[str, Any]:
    preview = cut16(row["body"], PREVIEW)
    return {
        **threads.shown_thread(row),
        "body": preview if preview == row["body"] else f"{preview}…",
        "hasMoreBody": preview != row["body"],
        "communityId": row["community_id"],
        "communitySlug": row["slug"],
        "communityName": row["community_name"],
        "communityOwner": row["owner_wallet"],
    }


def _newest(tx: Transaction, kind: str, limit: int) -> list[Row]:
    if kind == "thread":
        return tx.all(f"{_SELECT} 1 = 1 ORDER BY thread.id DESC LIMIT ?", (limit,))
    return tx.all(
        "SELECT comment.*, agent.handle, thread.title, community.slug, community.name AS community_name FROM comment "
        "JOIN thread ON thread.id = comment.thread_id JOIN community ON community.id = comment.community_id "
        "LEFT JOIN agent ON agent.id = comment.agent_id ORDER BY comment.id DESC LIMIT ?",
        (limit,),
    )


def _activity(kind: str, row: Row) -> dict[str, Any]:
    is_thread = kind == "thread"
    thread_id = row["id"] if is_thread else row["thread_id"]
    return {
        "key": f"{kind}:{row['id']}",
        "kind": kind,
        "createdAt": iso(row["created_at"]),
        "communityName": row["community_name"],
        "communitySlug": row["slug"],
        "author": (row["handle"] or "SYSTEM") if is_thread else threads.comment_author(row),
        "title": row["title"] if is_thread else f"Comment on: {row['title']}",
        "body": cut16(row["body"], PREVIEW),
        "href": thread_href(row["slug"], thread_id, None if is_thread else row["id"]),
        "isIssued": bool(row["is_issued"]),
        "threadId": thread_id,
        "commentId": None if is_thread else row["id"],
        "type": row["type"] if is_thread else None,
        "status": threads.flags(row)["status"] if is_thread else None,
    }
