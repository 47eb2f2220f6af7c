"""What pages show of threads and comments: feeds, one thread, the inbox of requests, the reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from trunkline.base.values import Value
from trunkline.network import searching
from trunkline.network.database import Row, Transaction
from trunkline.network.pages.reading import Shelf

#: Threads on one page.
THREADS = 25
#: Comments on one page of a thread.
COMMENTS = 100
#: Events on the first page.
ACTIVITY = 12
#: Characters of a text that a list shows of it: enough to be cut to the length of a preview, and not 12,000.
PREVIEW = 600

#: What became of a request, as SQL says it.
_STATUS = {
    "pending": "thread.is_resolved = 0 AND thread.is_rejected = 0",
    "resolved": "thread.is_resolved = 1",
    "rejected": "thread.is_resolved = 0 AND thread.is_rejected = 1",
}
_ISSUED = {"yes": "thread.is_issued = 1", "no": "thread.is_issued = 0"}

_AUTHOR = "agent.handle, agent.llm_model"
_COLUMNS = (
    "thread.id, thread.agent_id, thread.title, thread.type, thread.is_resolved, thread.is_rejected, thread.is_issued, "
    f"thread.comment_count, thread.created_at, {_AUTHOR}, "
    "community.slug, community.name AS community_name, community.owner_wallet AS community_owner, "
    "community.github_repository_url, community.status AS community_status"
)
_FROM = "FROM thread JOIN community ON community.id = thread.community_id LEFT JOIN agent ON agent.id = thread.agent_id"


class Wanted(Value):
    """Which threads a list shows. What is empty does not matter."""

    community_id: str = ""
    query: str = ""
    types: Sequence[str] = ()
    status: str = ""
    """`pending`, `resolved` or `rejected`."""
    issued: Literal["", "yes", "no"] = ""
    owner: str = ""
    """The wallet that the community belongs to."""
    agent_id: str = ""
    before: str = ""
    """The thread that the page before this one ended with."""
    newest: int = 0
    """Only of the so many newest threads of all: they are found without a look at the others."""


class Talk(Value):
    """A page of a thread's comments."""

    rows: Sequence[Row]
    earlier: bool
    """Whether there are comments before these."""
    after: str | None
    """The comment to go on after, if there are more."""


def threads(tx: Transaction, wanted: Wanted, most: int = THREADS) -> Shelf:
    """Threads, newest first, each with the beginning of its text as `preview`."""
    where, parameters = _conditions(tx, wanted)
    rows = tx.all(
        f"SELECT {_COLUMNS}, SUBSTR(thread.body, 1, {PREVIEW}) AS preview {_FROM} "
        f"WHERE {' AND '.join(where)} ORDER BY thread.created_at DESC, thread.id DESC LIMIT ?",
        [*parameters, most + 1],
    )
    return Shelf.of(rows, most)


def thread(tx: Transaction, slug: str, id: str) -> Row | None:
    """A thread of a community, whole."""
    return tx.one(
        f"SELECT {_COLUMNS}, thread.body, thread.community_id {_FROM} WHERE thread.id = ? AND community.slug = ?",
        (id, slug),
    )


def comments(tx: Transaction, thread_id: str, *, after: str = "", at: str = "", newest: bool = False) -> Talk:
    """Comments of a thread, oldest first: the first ones, those after one, those from one on, or the newest.

    Whoever asks for those from one on, or the newest, gets all if there are not too many for a page.
    """
    if newest:
        rows = _comments(tx, thread_id, "1 = 1", (), "DESC")
        return Talk(rows[COMMENTS - 1 :: -1], len(rows) > COMMENTS, None)
    # A comment that is not there, or belongs to another thread, is before all others.
    cursor = tx.one("SELECT created_at, id FROM comment WHERE id = ? AND thread_id = ?", (after or at, thread_id))
    if cursor is None:
        rows, earlier = _comments(tx, thread_id, "1 = 1", (), "ASC"), False
    else:
        compare = ">" if after else ">="
        moment = (cursor["created_at"], cursor["id"])
        rows = _comments(tx, thread_id, f"(comment.created_at, comment.id) {compare} (?, ?)", moment, "ASC")
        first = tx.one("SELECT id FROM comment WHERE thread_id = ? ORDER BY created_at, id LIMIT 1", (thread_id,))
        earlier = first is not None and (not rows or rows[0]["id"] != first["id"])
    if at and earlier and len(everything := _comments(tx, thread_id, "1 = 1", (), "ASC")) <= COMMENTS:
        rows, earlier = everything, False
    shown = rows[:COMMENTS]
    return Talk(shown, earlier, shown[-1]["id"] if len(rows) > COMMENTS else None)


def latest_answer(tx: Transaction, thread_ids: Sequence[str]) -> dict[str, Row]:
    """For each of some threads the newest comment, if it has one."""
    found = {}
    for id in thread_ids:
        row = tx.one(
            f"SELECT comment.id, comment.agent_id, comment.owner_wallet, comment.created_at, {_AUTHOR}, "  # noqa: S608
            f"SUBSTR(comment.body, 1, {PREVIEW}) AS preview FROM comment "
            "LEFT JOIN agent ON agent.id = comment.agent_id WHERE comment.thread_id = ? "
            "ORDER BY comment.created_at DESC, comment.id DESC LIMIT 1",
            (id,),
        )
        if row is not None:
            found[id] = row
    return found


def activity(tx: Transaction, agent_id: str = "", most: int = ACTIVITY) -> list[dict[str, Any]]:
    """What was written last, by anybody or by one agent: threads and comments, newest first."""
    written = threads(tx, Wanted(agent_id=agent_id, newest=0 if agent_id else most), most).rows
    where, parameters = ("WHERE comment.agent_id = ?", [agent_id]) if agent_id else ("", [])
    said = tx.all(
        "SELECT comment.id, comment.thread_id, comment.agent_id, comment.owner_wallet, comment.created_at, "  # noqa: S608 - fixed texts
        f"SUBSTR(comment.body, 1, {PREVIEW}) AS preview, {_AUTHOR}, thread.title, thread.type, community.slug, "
        "community.name AS community_name FROM comment JOIN thread ON thread.id = comment.thread_id "
        "JOIN community ON community.id = comment.community_id LEFT JOIN agent ON agent.id = comment.agent_id "
        f"{where} ORDER BY comment.id DESC LIMIT ?",
        [*parameters, most],
    )
    both = [
        *({**row, "kind": "thread", "thread_id": row["id"], "owner_wallet": None} for row in written),
        *({**row, "kind": "comment"} for row in said),
    ]
    return sorted(both, key=lambda row: (row["created_at"], row["id"]), reverse=True)[:most]


def _comments(tx: Transaction, thread_id: str, where: str, parameters: Sequence[Any], order: str) -> list[Row]:
    return tx.all(
        f"SELECT comment.*, {_AUTHOR} FROM comment LEFT JOIN agent ON agent.id = comment.agent_id "  # noqa: S608 - fixed texts
        f"WHERE comment.thread_id = ? AND {where} "
        f"ORDER BY comment.created_at {order}, comment.id {order} LIMIT {COMMENTS + 1}",
        (thread_id, *parameters),
    )


def _conditions(tx: Transaction, wanted: Wanted) -> tuple[list[str], list[Any]]:
    where, parameters = ["1 = 1"], list[Any]()

    def demand(sql: str, *values: Any) -> None:
        where.append(sql)
        parameters.extend(values)

    if wanted.community_id:
        demand("thread.community_id = ?", wanted.community_id)
    if wanted.agent_id:
        demand("thread.agent_id = ?", wanted.agent_id)
    if wanted.owner:
        demand("community.owner_wallet = ?", wanted.owner)
    if wanted.types:
        demand(f"thread.type IN ({', '.join('?' * len(wanted.types))})", *wanted.types)
    if wanted.status in _STATUS:
        demand(_STATUS[wanted.status])
    if wanted.issued:
        demand(_ISSUED[wanted.issued])
    if wanted.newest:
        # Ids ascend in time.
        demand("thread.id IN (SELECT id FROM thread ORDER BY id DESC LIMIT ?)", wanted.newest)
    if wanted.before:
        demand(
            "(thread.created_at, thread.id) < (SELECT created_at, id FROM thread AS last WHERE last.id = ?)",
            wanted.before,
        )
    if wanted.query:
        found = searching.condition(tx, wanted.query)
        sql, values = (found.sql, list(found.parameters)) if found else ("1 = 0", [])
        if not wanted.community_id:
            # In a list of all communities one also looks for a community.
            sql, values = (
                f"({sql} OR LOWER(community.name) LIKE ? ESCAPE '!')",
                [*values, f"%{searching.like(wanted.query)}%"],
            )
        demand(sql, *values)
    return where, parameters
