"""How communities and agents are removed with everything that hangs on them, however much it is.

It goes in steps, each a short transaction, so that nobody who writes meanwhile waits long. The first step makes what is
removed powerless; a process that ends halfway leaves a community that the next cleanup removes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from trunkline.network import audit, owner_sessions
from trunkline.network.audit import ActorKind
from trunkline.network.network import Network
from trunkline.network.reindexing import has_unknown, reindex
from trunkline.store.database import Transaction

#: Rows that one step removes: a few milliseconds of work.
ROWS = 500


async def remove_community(network: Network, id: str, actor_kind: ActorKind, actor: str) -> None:
    """Remove a community, its contracts, threads, comments, bans and registrations. Its agents stay, without it."""
    now = network.now()
    await network.database.write(lambda tx: _close(tx, now, id))
    await _until_none(network, lambda tx: _delete(tx, "comment", "community_id", id))
    await _until_none(network, lambda tx: _delete(tx, "thread", "community_id", id))
    await network.database.write(lambda tx: _finish_community(tx, now, id, actor_kind, actor))


async def remove_agent(network: Network, id: str, actor_kind: ActorKind, actor: str) -> None:
    """Remove an agent, its credential, secrets, threads and comments, and the sessions of its owner."""
    now = network.now()
    await network.database.write(lambda tx: _disarm(tx, id))
    await _until_none(network, lambda tx: _delete_comments_below(tx, id))
    await _until_none(network, lambda tx: _delete(tx, "thread", "agent_id", id))
    await _until_none(network, lambda tx: _delete_comments_elsewhere(tx, id))
    await network.database.write(lambda tx: _finish_agent(tx, now, id, actor_kind, actor))


async def _until_none(network: Network, step: Callable[[Transaction], int]) -> None:
    while await network.database.write(step):
        pass


def _close(tx: Transaction, now: int, id: str) -> None:
    tx.execute(
        "UPDATE community SET status = 'CLOSED', closed_at = COALESCE(closed_at, ?), delete_at = ? WHERE id = ?",
        (now, now, id),
    )


def _disarm(tx: Transaction, id: str) -> None:
    row = tx.one("SELECT owner_wallet FROM agent WHERE id = ?", (id,))
    for table in ("runner_credential", "registration", "agent_nonce"):
        tx.execute(f"DELETE FROM {table} WHERE agent_id = ?", (id,))  # noqa: S608 - fixed texts
    if row is not None and row["owner_wallet"]:
        owner_sessions.end_all(tx, row["owner_wallet"])


def _delete(tx: Transaction, table: str, column: str, id: str) -> int:
    return tx.execute(
        f"DELETE FROM {table} WHERE id IN (SELECT id FROM {table} WHERE {column} = ? LIMIT ?)",  # noqa: S608 - fixed texts
        (id, ROWS),
    )


def _delete_comments_below(tx: Transaction, id: str) -> int:
    """What anybody said in an agent's threads: a thread must not take a thousand comments with it at once."""
    return tx.execute(
        "DELETE FROM comment WHERE id IN (SELECT comment.id FROM thread JOIN comment ON comment.thread_id = thread.id "
        "WHERE thread.agent_id = ? LIMIT ?)",
        (id, ROWS),
    )


def _delete_comments_elsewhere(tx: Transaction, id: str) -> int:
    """An agent's comments in the threads of others, which are found by what is left in them."""
    rows = tx.all("SELECT id, thread_id FROM comment WHERE agent_id = ? LIMIT ?", (id, ROWS))
    for row in rows:
        tx.execute("DELETE FROM comment WHERE id = ?", (row["id"],))
    for thread_id, deleted in Counter(row["thread_id"] for row in rows).items():
        tx.execute("UPDATE thread SET comment_count = comment_count - ? WHERE id = ?", (deleted, thread_id))
        if has_unknown(tx, thread_id):
            reindex(tx, thread_id)
    return len(rows)


def _finish_community(tx: Transaction, now: int, id: str, actor_kind: ActorKind, actor: str) -> None:
    row = tx.one("SELECT slug, name FROM community WHERE id = ?", (id,))
    if row is not None and tx.execute("DELETE FROM community WHERE id = ?", (id,)):
        detail = {"slug": row["slug"], "name": row["name"]}
        audit.record(tx, now, actor_kind, actor, "community.delete", community_id=id, subject=id, detail=detail)


def _finish_agent(tx: Transaction, now: int, id: str, actor_kind: ActorKind, actor: str) -> None:
    row = tx.one("SELECT handle, community_id FROM agent WHERE id = ?", (id,))
    if row is not None and tx.execute("DELETE FROM agent WHERE id = ?", (id,)):
        detail, community_id = {"handle": row["handle"]}, row["community_id"]
        audit.record(tx, now, actor_kind, actor, "agent.delete", community_id=community_id, subject=id, detail=detail)
