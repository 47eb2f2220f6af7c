"""Communities as their owners see them: who owns which, how many one may have, and how one is closed."""

from __future__ import annotations

from typing import Any

from trunkline.base.asgi_answers import Refused
from trunkline.network import audit
from trunkline.network.texts import iso
from trunkline.store.database import Row, Transaction

#: Open communities of one wallet.
MAX_OWNED = 3
#: How long a closed community can still be read.
DAYS_AFTER_CLOSING = 14
#: Communities in one answer. A wallet has three open ones, and those that it closed in the last two weeks.
MAX_LISTED = 200

_DAY_MS = 24 * 60 * 60 * 1000


def one_at_a_time(tx: Transaction, name: str) -> None:
    """Let only one transaction at a time go on under this name. SQLite has one writer as it is."""
    if tx.dialect == "postgresql":
        tx.one("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))::text AS locked", (name,))


def community(tx: Transaction, id: str) -> Row:
    """A community.

    Raises:
        Refused: 404, there is none of that id.
    """
    row = tx.one("SELECT * FROM community WHERE id = ?", (id,))
    if row is None:
        raise Refused(404, "Community not found")
    return row


def open_community(tx: Transaction, id: str) -> Row:
    """A community that takes changes.

    Raises:
        Refused: 404 if there is none, 403 if it is closed.
    """
    row = community(tx, id)
    if row["status"] != "ACTIVE":
        raise Refused(403, "Community is closed")
    return row


def owned_community(tx: Transaction, id: str, wallet: str) -> Row:
    """A community that belongs to a wallet.

    Raises:
        Refused: 404 if there is none, 403 if it belongs to somebody else.
    """
    row = community(tx, id)
    if (row["owner_wallet"] or "").lower() != wallet:
        raise Refused(403, "Only the community owner can do this")
    return row


def open_owned(tx: Transaction, wallet: str) -> int:
    """How many open communities a wallet has."""
    row = tx.one("SELECT COUNT(*) AS n FROM community WHERE owner_wallet = ? AND status = 'ACTIVE'", (wallet,))
    return int(row["n"]) if row else 0


def close(tx: Transaction, now: int, wallet: str, id: str, confirm_name: str) -> int:
    """Close a community: its agents are no longer registered, and it goes in two weeks. Returns when.

    Closing it once more changes nothing.

    Raises:
        Refused: 404 if there is none, 403 if it is somebody else's, 400 if another name was typed.
    """
    one_at_a_time(tx, id)
    row = owned_community(tx, id, wallet)
    if _typed(confirm_name) != _typed(row["name"]):
        raise Refused(400, "Community name does not match")
    if row["status"] == "CLOSED" and row["delete_at"] is not None:
        return int(row["delete_at"])
    delete_at = now + DAYS_AFTER_CLOSING * _DAY_MS
    tx.execute(
        "UPDATE community SET status = 'CLOSED', closed_at = ?, delete_at = ? WHERE id = ?", (now, delete_at, id)
    )
    tx.execute("DELETE FROM registration WHERE community_id = ?", (id,))
    audit.record(tx, now, "owner", wallet, "community.close", community_id=id, subject=id)
    return delete_at


def owned(tx: Transaction, wallet: str) -> list[dict[str, Any]]:
    """The communities of a wallet, newest first, with their contracts."""
    rows = tx.all(
        "SELECT * FROM community WHERE owner_wallet = ? ORDER BY created_at DESC, id DESC LIMIT ?",
        (wallet, MAX_LISTED),
    )
    return [shown(row) | {"contracts": _contracts(tx, row["id"])} for row in rows]


def shown(row: Row) -> dict[str, Any]:
    """A community in the words of the API."""
    return {
        "id": row["id"],
        "slug": row["slug"],
        "name": row["name"],
        "description": row["description"],
        "ownerWallet": row["owner_wallet"],
        "githubRepositoryUrl": row["github_repository_url"],
        "status": row["status"],
        "createdAt": iso(row["created_at"]),
        "closedAt": _moment(row["closed_at"]),
        "deleteAt": _moment(row["delete_at"]),
    }


def _contracts(tx: Transaction, community_id: str) -> list[dict[str, Any]]:
    rows = tx.all(
        "SELECT id, name, address, chain, faucet_function FROM service_contract WHERE community_id = ? "
        "ORDER BY created_at, id",
        (community_id,),
    )
    return [
        {"id": row["id"], "name": row["name"], "address": row["address"], "chain": row["chain"],
         "faucetFunction": row["faucet_function"]}
        for row in rows
    ]  # fmt: skip


def _typed(name: str) -> str:
    """A name as people type it: spaces and case do not count."""
    return " ".join(name.split()).lower()


def _moment(value: int | None) -> str | None:
    return None if value is None else iso(value)
