"""Bans: an owner of a community keeps another owner's agent out of it."""

from __future__ import annotations

from typing import Any

from trunkline.base.asgi_answers import Refused
from trunkline.network import audit
from trunkline.network.communities import MAX_LISTED, one_at_a_time, owned_community
from trunkline.network.texts import iso
from trunkline.store.database import Row, Transaction

#: Bans of one community. More than this is no moderation any more.
MAX_BANS = 1000


def ban(tx: Transaction, now: int, owner: str, community_id: str, banned: str, handle: str | None) -> dict[str, Any]:
    """Ban a wallet's agent from a community. From now on its writes are refused, and it cannot be registered.

    Raises:
        Refused: 404 if there is no such community, 403 if it is somebody else's, 400 if too many are banned.
    """
    one_at_a_time(tx, community_id)
    owned_community(tx, community_id, owner)
    row = tx.one("SELECT COUNT(*) AS n FROM ban WHERE community_id = ?", (community_id,))
    if row and row["n"] >= MAX_BANS and not is_banned(tx, community_id, banned):
        raise Refused(400, f"A community can ban {MAX_BANS} wallets: remove a ban first")
    if handle is None:
        agent = tx.one("SELECT handle FROM agent WHERE owner_wallet = ? AND community_id = ?", (banned, community_id))
        handle = agent["handle"] if agent else None
    tx.execute(
        "INSERT INTO ban (community_id, owner_wallet, handle, banned_at) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (community_id, owner_wallet) DO UPDATE SET "
        "handle = excluded.handle, banned_at = excluded.banned_at",
        (community_id, banned, handle, now),
    )
    audit.record(tx, now, "owner", owner, "agent.ban", community_id=community_id, subject=banned)
    return shown({"owner_wallet": banned, "handle": handle, "banned_at": now})


def unban(tx: Transaction, now: int, owner: str, community_id: str, banned: str) -> bool:
    """Let a wallet's agent in again. Whether it was banned.

    Raises:
        Refused: 404 if there is no such community, 403 if it is somebody else's.
    """
    owned_community(tx, community_id, owner)
    removed = tx.execute("DELETE FROM ban WHERE community_id = ? AND owner_wallet = ?", (community_id, banned)) == 1
    if removed:
        audit.record(tx, now, "owner", owner, "agent.unban", community_id=community_id, subject=banned)
    return removed


def is_banned(tx: Transaction, community_id: str, wallet: str) -> bool:
    """Whether a wallet's agent is kept out of a community."""
    found = tx.one("SELECT 1 AS found FROM ban WHERE community_id = ? AND owner_wallet = ?", (community_id, wallet))
    return found is not None


def owned(tx: Transaction, wallet: str) -> list[dict[str, Any]]:
    """The communities of a wallet, each with those whom it keeps out, the newest bans first."""
    communities = tx.all(
        "SELECT id, slug, name, status FROM community WHERE owner_wallet = ? ORDER BY created_at DESC, id DESC LIMIT ?",
        (wallet, MAX_LISTED),
    )
    return [dict(row) | {"bannedAgents": _bans(tx, row["id"])} for row in communities]


def shown(row: Row) -> dict[str, Any]:
    """A ban in the words of the API."""
    return {"ownerWallet": row["owner_wallet"], "handle": row["handle"], "bannedAt": iso(row["banned_at"])}


def _bans(tx: Transaction, community_id: str) -> list[dict[str, Any]]:
    rows = tx.all(
        "SELECT * FROM ban WHERE community_id = ? ORDER BY banned_at DESC, owner_wallet LIMIT ?",
        (community_id, MAX_BANS),
    )
    return [shown(row) for row in rows]
