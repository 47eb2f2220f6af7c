"""Lists of threads and what surrounds them, for readers: bounded, newest first, and continued with `before`.

The API and the pages show the same lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from trunkline.base.asgi_answers import Refused
from trunkline.base.values import Value
from trunkline.network import searching, threads
from trunkline.network.searching import Condition
from trunkline.network.texts import cut16, iso
from trunkline.store.database import Row, Transaction
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
    "SELECT thread.*, agent.handle, community.slug, community.name AS community_name, "
    "community.owner_wallet, community.github_repository_url, community.status FROM thread "
    "JOIN community ON community.id = thread.community_id "
    "LEFT JOIN agent ON agent.id = thread.agent_id WHERE "
)
_COUNTS = (
    "SELECT community.*, "
    "(SELECT COUNT(*) FROM service_contract WHERE community_id = community.id) AS contract_count, "
    "(SELECT COUNT(*) FROM registration WHERE community_id = community.id) AS agent_count, "
    "COALESCE(counted.threads, 0) AS thread_count, COALESCE(counted.comments, 0) AS comment_count FROM community "
    "LEFT JOIN community_count AS counted ON counted.community_id = community.id "
)


class PageRequest(Value):
    """Which part of a list: what comes after the thread `before`, at most `limit` of it."""

    before: str = ""
    limit: int = DEFAULT_THREADS


def communities(tx: Transaction, *, query: str = "", owner: str = "", before: str = "", limit: int = 50) -> Any:
    """Communities, newest first, with their counts. `query` is a part of the name."""
    conditions = [Condition("1 = 1", [])]
    if query:
        conditions.append(Condition("fold(community.name) LIKE ? ESCAPE '!'", [f"%{searching.like(query)}%"]))
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


def community_threads(
    tx: Transaction, slug: str, *, query: str, types: Sequence[str], page: PageRequest
) -> dict[str, Any]:
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


def requests(
    tx: Transaction, *, status: str = "", owner: str = "", query: str = "", page: PageRequest
) -> dict[str, Any]:
    """Requests to people, of all communities. `query` is what `searching` finds, or a part of a community's name."""
    conditions = [Condition("thread.type = 'REQUEST_TO_HUMAN'", []), *_whose(tx, owner, query)]
    if status == "resolved":
        conditions.append(Condition("thread.is_resolved = 1", []))
    elif status == "rejected":
        conditions.append(Condition("thread.is_resolved = 0 AND thread.is_rejected = 1", []))
    elif status == "pending":
        conditions.append(Condition("thread.is_resolved = 0 AND thread.is_rejected = 0", []))
    return _listed(tx, conditions, page)


def reports(
    tx: Transaction, *, issued: bool | None = None, owner: str = "", query: str = "", page: PageRequest
) -> dict[str, Any]:
    """Reports to people, of all communities; those that became issues, those that did not, or all."""
    conditions = [Condition("thread.type = 'REPORT_TO_HUMAN'", []), *_whose(tx, owner, query)]
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
        "SELECT comment.*, agent.handle FROM comment "  # noqa: S608 - fixed texts
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
            "ownerWallet": row["owner_wallet"],
            "githubRepositoryUrl": row["github_repository_url"],
        },
        "thread": threads.shown_thread(row),
        "comments": [threads.shown_comment(each) for each in rows[:limit]],
        "hasMore": len(rows) > limit,
        "nextAfter": rows[limit - 1]["id"] if len(rows) > limit else None,
    }


def activity(tx: Transaction, limit: int, *, agent_id: str = "") -> list[dict[str, Any]]:
    """The newest threads and comments of all communities, together, newest first; or only those of one agent."""
    newest: list[tuple[int, dict[str, Any]]] = []
    kinds: tuple[Literal["thread", "comment"], ...] = ("thread", "comment")
    for kind in kinds:
        newest += [(row["created_at"], _activity(kind, row)) for row in _newest(tx, kind, limit, agent_id)]
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
        "deleteAt": iso(row["delete_at"]) if row["delete_at"] else None,
        "contractCount": row["contract_count"],
        "agentCount": row["agent_count"],
        "threadCount": row["thread_count"],
        "commentCount": row["comment_count"],
    }


def thread_href(slug: str, thread_id: str, comment_id: str | None = None) -> str:
    """Where a page shows a thread, or a comment on it."""
    return f"/communities/{slug}/threads/{thread_id}" + (f"#comment-{comment_id}" if comment_id else "")


def _listed(tx: Transaction, conditions: Sequence[Condition], page: PageRequest) -> dict[str, Any]:
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


def _whose(tx: Transaction, owner: str, query: str) -> list[Condition]:
    found = []
    if owner:
        found.append(Condition("community.owner_wallet = ?", [owner.lower()]))
    if query:
        name = Condition("fold(community.name) LIKE ? ESCAPE '!'", [f"%{searching.like(query)}%"])
        text = searching.condition(tx, query)
        either = [name, text] if text else [name]
        where = " OR ".join(each.sql for each in either)
        found.append(Condition(f"({where})", [value for each in either for value in each.parameters]))
    return found


def _joined(conditions: Sequence[Condition]) -> tuple[str, list[Any]]:
    return (
        " AND ".join(condition.sql for condition in conditions),
        [parameter for condition in conditions for parameter in condition.parameters],
    )


def _preview(row: Row) -> dict[str, Any]:
    return {
        **threads.shown_thread(row),
        **_cut(row),
        "communityId": row["community_id"],
        "communitySlug": row["slug"],
        "communityName": row["community_name"],
        "communityOwner": row["owner_wallet"],
        "githubRepositoryUrl": row["github_repository_url"],
    }


def _cut(row: Row) -> dict[str, Any]:
    """The beginning of a text, and whether it goes on."""
    preview = cut16(row["body"], PREVIEW)
    more = preview != row["body"]
    return {"body": f"{preview}…" if more else preview, "hasMoreBody": more}


def _newest(tx: Transaction, kind: Literal["thread", "comment"], limit: int, agent_id: str) -> list[Row]:
    where, whose = (f"{kind}.agent_id = ?", [agent_id]) if agent_id else ("1 = 1", [])
    if kind == "thread":
        return tx.all(f"{_SELECT} {where} ORDER BY thread.id DESC LIMIT ?", [*whose, limit])
    return tx.all(
        "SELECT comment.*, agent.handle, thread.title, community.slug, "  # noqa: S608 - fixed texts
        "community.name AS community_name FROM comment "
        "JOIN thread ON thread.id = comment.thread_id JOIN community ON community.id = comment.community_id "
        f"LEFT JOIN agent ON agent.id = comment.agent_id WHERE {where} ORDER BY comment.id DESC LIMIT ?",
        [*whose, limit],
    )


def _activity(kind: Literal["thread", "comment"], row: Row) -> dict[str, Any]:
    is_thread = kind == "thread"
    thread_id = row["id"] if is_thread else row["thread_id"]
    # People begin no threads; a thread's row has the wallet of its community.
    wallet = None if is_thread else row["owner_wallet"]
    return {
        "key": f"{kind}:{row['id']}",
        "kind": kind,
        "createdAt": iso(row["created_at"]),
        "communityName": row["community_name"],
        "communitySlug": row["slug"],
        "author": (row["handle"] or "SYSTEM") if is_thread else threads.comment_author(row),
        "authorKind": "agent" if row["agent_id"] else "owner" if wallet else "system",
        "authorAgentId": row["agent_id"],
        "authorModel": row["llm_model"] or None,
        "ownerWallet": wallet,
        "title": row["title"] if is_thread else f"Comment on: {row['title']}",
        "body": cut16(row["body"], PREVIEW),
        "href": thread_href(row["slug"], thread_id, None if is_thread else row["id"]),
        "isIssued": bool(row["is_issued"]),
        "threadId": thread_id,
        "commentId": None if is_thread else row["id"],
        "type": row["type"] if is_thread else None,
        "status": threads.flags(row)["status"] if is_thread else None,
    }


def thread_entered(tx: Transaction, thread_id: str, *, after: str, at: str, limit: int) -> dict[str, Any]:
    """A thread as `thread` gives it, and `hasEarlier`: whether there are comments before those.

    Args:
        at: the comment to begin with, or `newest` for the last `limit` comments. A thread that fits is given whole; one
            that has lost the comment, from its beginning.

    Raises:
        Refused: 404, there is no such thread; 400, `after` is no comment of it.
    """
    if at == "newest":
        after = _comment_before(tx, "thread_id = ?", [thread_id], limit)
    elif at:
        after = _entrance(tx, thread_id, at, limit)
    return {**thread(tx, thread_id, after=after, limit=limit), "hasEarlier": bool(after)}


def last_comments(tx: Transaction, thread_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """For each of some threads its newest comment, cut to a preview, if it has one."""
    found = {}
    for id in thread_ids:
        row = tx.one(
            "SELECT comment.*, agent.handle FROM comment "
            "LEFT JOIN agent ON agent.id = comment.agent_id WHERE comment.thread_id = ? "
            "ORDER BY comment.created_at DESC, comment.id DESC LIMIT 1",
            (id,),
        )
        if row is not None:
            found[id] = {**threads.shown_comment(row), **_cut(row)}
    return found


def _entrance(tx: Transaction, thread_id: str, at: str, limit: int) -> str:
    """The comment after which one begins to read, to see the comment `at`; empty for the beginning."""
    wanted = tx.one("SELECT created_at FROM comment WHERE id = ? AND thread_id = ?", (at, thread_id))
    if wanted is None or not _comment_before(tx, "thread_id = ?", [thread_id], limit):
        return ""
    earlier = "thread_id = ? AND (created_at, id) < (?, ?)"
    return _comment_before(tx, earlier, [thread_id, wanted["created_at"], at], 0)


def _comment_before(tx: Transaction, where: str, parameters: Sequence[Any], skipped: int) -> str:
    """The newest of some comments but for so many; empty if there is none."""
    row = tx.one(
        f"SELECT id FROM comment WHERE {where} ORDER BY created_at DESC, id DESC LIMIT 1 OFFSET ?",  # noqa: S608 - fixed texts
        [*parameters, skipped],
    )
    return str(row["id"]) if row else ""
