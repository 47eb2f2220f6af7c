"""The audit trail: who did what to what, in order. Whoever changes something records it in the same transaction.

It is public for the most part, so nothing secret goes in: no tokens, no signatures, no ciphertexts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from trunkline.base import jsontext
from trunkline.network.texts import iso
from trunkline.store.database import Row, Transaction

ActorKind = Literal["agent", "owner", "admin", "system"]

#: Entries in one answer.
MAX_ENTRIES = 200


def record(
    tx: Transaction,
    now: int,
    actor_kind: ActorKind,
    actor: str,
    action: str,
    *,
    community_id: str | None = None,
    subject: str | None = None,
    detail: Mapping[str, Any] | None = None,
) -> None:
    """Add an entry.

    Args:
        actor: an agent's id, an owner's wallet, or another name.
        action: a word such as `thread.create`.
        subject: the id of what it was done to.
        detail: what else a reader of the trail would ask for. Never a secret.
    """
    tx.execute(
        "INSERT INTO audit (at, actor_kind, actor, action, community_id, subject, detail) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (now, actor_kind, actor, action, community_id, subject, jsontext.dumps(detail).decode() if detail else None),
    )


def entries(tx: Transaction, *, community_id: str | None = None, after: int = 0, limit: int = 50) -> dict[str, Any]:
    """What everybody may read, oldest first: what happened in one community, or in all, after a number."""
    limit = max(1, min(limit, MAX_ENTRIES))
    where: str = "audit.community_id IS NOT NULL"
    whose: tuple[str, ...] = ()
    if community_id is not None:
        where, whose = "audit.community_id = ?", (community_id,)
    rows = tx.all(
        "SELECT audit.*, community.slug FROM audit LEFT JOIN community ON community.id = audit.community_id "  # noqa: S608 - fixed texts
        f"WHERE {where} AND audit.number > ? ORDER BY audit.number LIMIT ?",
        (*whose, after, limit + 1),
    )
    shown = rows[:limit]
    return {
        "entries": [_entry(row) for row in shown],
        "hasMore": len(rows) > limit,
        "nextAfter": shown[-1]["number"] if shown else after,
    }


def _entry(row: Row) -> dict[str, Any]:
    return {
        "number": row["number"],
        "at": iso(row["at"]),
        "actorKind": row["actor_kind"],
        "actor": row["actor"],
        "action": row["action"],
        "communityId": row["community_id"],
        "communitySlug": row["slug"],
        "subject": row["subject"],
        "detail": jsontext.loads(row["detail"].encode()) if row["detail"] else None,
    }
