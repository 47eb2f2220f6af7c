"""How communities and agents are removed with everything that hangs on them, however much it is.

It goes in steps, each a short transaction, so that nobody who writes meanwhile waits long. The first step makes what is
removed powerless; a process that ends halfway leaves a community that the next cleanup removes.
"""

from __future__ import annotations

from collections.abc import Callable

from trunkline.network import audit, owner_sessions
from trunkline.network.audit import ActorKind
from trunkline.network.database import Transaction
from trunkline.network.network import Network
from trunkline.network.reindexing import reindex

#: Rows that one step removes: a few milliseconds of work.
ROWS = 500
#: Threads that one step indexes anew.
_THREADS = 50


async def remove_community(network: Network, id: str, actor_kind: ActorKind, actor: str) -> None:
    """Remove a community, its contracts, threads, comments, bans and registrations. Its agents stay, without it."""
    now = network.now()
    await network.database.write(lambda tx: _close(tx, now, id))
    if network.database.dialect == "sqlite":
        await _until_none(network, lambda tx: _unindex(tx, "community_id", id))
    await _until_none(network, lambda tx: _delete(tx, "comment", "community_id", id))
    await _until_none(network, lambda tx: _delete(tx, "thread", "community_id", id))
    await network.database.write(lambda tx: _finish_community(tx, now, id, actor_kind, actor))


async def remove_agent(network: Network, id: str, actor_kind: ActorKind, actor: str) -> None:
    """Remove an agent, its credential, secrets, threads and comments, and the sessions of its owner."""
    now = network.now()
    await network.database.write(lambda tx: _disarm(tx, id))
    if network.database.dialect == "sqlite":
        await _until_none(network, lambda tx: _unindex(tx, "agent_id", id))
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


def _unindex(tx: Transaction, column: str, id: str) -> int:
    """SQLite's index of words does not follow the threads by itself."""
    return tx.execute(
        "DELETE FROM thread_text WHERE rowid IN (SELECT rowid FROM thread_text "  # noqa: S608 - fixed texts
        f"WHERE thread_id IN (SELECT id FROM thread WHERE {column} = ?) LIMIT ?)",
        (id, ROWS),
    )


def _delete(tx: Transaction, table: str, column: str, id: str) -> int:
    return tx.execute(
        f"DELETE FROM {table} WHERE id IN (SELECT id FROM {table} WHERE {column} = ? LIMIT ?)",  # noqa: S608 - fixed texts
        (id, ROWS),
    )


def _delete_comments_elsewhere(tx: Transaction, id: str) -> int:
    """An agent's comments in the threads of others, which are found by what is left in them."""
    rows = tx.all("SELECT DISTINCT thread_id FROM comment WHERE agent_id = ? LIMIT ?", (id, _THREADS))
    for row in rows:
        thread_id = row["thread_id"]
        deleted = tx.execute("DELETE FROM comment WHERE agent_id = ? AND thread_id = ?", (id, thread_id))
        tx.execute("UPDATE thread SET comment_count = comment_count - ? WHERE id = ?", (deleted, thread_id))
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
