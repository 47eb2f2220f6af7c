"""What an administrator sees and removes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.base.asgi_answers import Refused
from trunkline.network.communities import shown
from trunkline.network.registrations import shown as shown_agent
from trunkline.network.texts import iso
from trunkline.store.database import Row, Transaction

#: Entries in one answer; `after` asks for those behind it.
MAX_LISTED = 500


def agents(tx: Transaction, after: str, limit: int) -> dict[str, Any]:
    """All agents, oldest first, registered or not. Neither their secrets nor the hashes of their tokens."""
    rows = tx.all(
        "SELECT agent.*, community.slug, community.name, community.status, "
        "registration.created_at AS registered_at, runner_credential.updated_at AS credential_at "
        "FROM agent LEFT JOIN community ON community.id = agent.community_id "
        "LEFT JOIN registration ON registration.agent_id = agent.id "
        "LEFT JOIN runner_credential ON runner_credential.agent_id = agent.id AND runner_credential.revoked_at IS NULL "
        "WHERE agent.id > ? ORDER BY agent.id LIMIT ?",
        (after, limit + 1),
    )
    return {"agents": [_agent(row) for row in rows[:limit]], **_more(rows, limit)}


def communities(tx: Transaction, after: str, limit: int) -> dict[str, Any]:
    """All communities, oldest first, the closed ones too."""
    rows = tx.all(
        "SELECT community.*, "
        "(SELECT COUNT(*) FROM service_contract WHERE service_contract.community_id = community.id) AS contract_count, "
        "(SELECT COUNT(*) FROM thread WHERE thread.community_id = community.id) AS thread_count, "
        "(SELECT COUNT(*) FROM registration WHERE registration.community_id = community.id) AS agent_count "
        "FROM community WHERE community.id > ? ORDER BY community.id LIMIT ?",
        (after, limit + 1),
    )
    counts = {"contractCount": "contract_count", "threadCount": "thread_count", "agentCount": "agent_count"}
    listed = [shown(row) | {name: row[column] for name, column in counts.items()} for row in rows[:limit]]
    return {"communities": listed, **_more(rows, limit)}


def find_agent(tx: Transaction, agent_id: str, handle: str, owner_wallet: str) -> Row:
    """The one agent that is meant, by the first of these that is given.

    Raises:
        Refused: 400 if nothing is given, 404 if there is none, 409 if several could be meant.
    """
    wanted = {"id": agent_id, "handle": handle, "owner_wallet": owner_wallet.lower()}
    return _the_one(tx, "agent", wanted, "agentId, handle, or ownerWallet is required", "Agent not found")


def find_community(tx: Transaction, community_id: str, slug: str) -> Row:
    """The community that is meant.

    Raises:
        Refused: 400 if nothing is given, 404 if there is none.
    """
    wanted = {"id": community_id, "slug": slug}
    return _the_one(tx, "community", wanted, "communityId or slug is required", "Community not found")


def _the_one(tx: Transaction, table: str, wanted: Mapping[str, str], nothing: str, none: str) -> Row:
    column = next((column for column, value in wanted.items() if value), None)
    if column is None:
        raise Refused(400, nothing)
    rows = tx.all(f"SELECT * FROM {table} WHERE {column} = ? LIMIT 2", (wanted[column],))  # noqa: S608 - fixed texts
    if not rows:
        raise Refused(404, none)
    if len(rows) > 1:
        raise Refused(409, "Several agents match: name the one that is meant by agentId")
    return rows[0]


def _agent(row: Row) -> dict[str, Any]:
    community = {"id": row["community_id"], "slug": row["slug"], "name": row["name"], "status": row["status"]}
    return shown_agent(row) | {
        "createdAt": iso(row["created_at"]),
        "isRegistered": row["registered_at"] is not None,
        "hasRunnerCredential": row["credential_at"] is not None,
        "community": community if row["slug"] is not None else None,
    }


def _more(rows: list[Row], limit: int) -> dict[str, Any]:
    has_more = len(rows) > limit
    return {"hasMore": has_more, "nextAfter": rows[limit - 1]["id"] if has_more else None}
