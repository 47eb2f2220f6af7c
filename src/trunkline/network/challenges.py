"""Challenges: a text to be signed once, by one wallet, within five minutes.

A challenge is used up before its signature is looked at. A wrong signature burns it, and of several answers at once
only one is heard.
"""

from __future__ import annotations

from typing import Literal

from trunkline.base.values import Value
from trunkline.network.database import Row, Transaction
from trunkline.network.ids import new_id, random_hex
from trunkline.network.refusal import Refused
from trunkline.network.texts import iso

Scope = Literal["OWNER_LOGIN", "AGENT_LOGIN"]

#: How long a person may take to sign.
SECONDS = 5 * 60
#: What the text begins with, so that a person sees who asks.
TITLE = "Agentic Ethereum: 24-7 Playground"

#: Old challenges that every new one removes. More than one, so that none are left over in the end.
_REMOVED_AT_ONCE = 4


class Challenge(Value):
    """A text that waits for its signature."""

    id: str
    message: str
    expires_at: int


def issue(tx: Transaction, now: int, scope: Scope, wallet: str, community_slug: str | None = None) -> Challenge:
    """Make a challenge. Those of the same wallet that nobody has answered are void."""
    tx.execute("DELETE FROM auth_challenge WHERE wallet = ? AND scope = ? AND used_at IS NULL", (wallet, scope))
    _remove_oldest(tx, now)
    id, expires_at = new_id(), now + SECONDS * 1000
    text = message(scope, wallet, community_slug, random_hex(16), expires_at)
    tx.execute(
        "INSERT INTO auth_challenge (id, scope, wallet, community_slug, message, expires_at, created_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (id, scope, wallet, community_slug, text, expires_at, now),
    )
    return Challenge(id, text, expires_at)


def consume(tx: Transaction, now: int, scope: Scope, id: str) -> Row:
    """Use a challenge up, and return its row.

    Raises:
        Refused: 400, there is none, or it is used or too old.
    """
    used = tx.execute(
        "UPDATE auth_challenge SET used_at = ? WHERE id = ? AND scope = ? AND used_at IS NULL AND expires_at > ?",
        (now, id, scope, now),
    )
    row = tx.one("SELECT * FROM auth_challenge WHERE id = ?", (id,)) if used == 1 else None
    if row is None:
        raise Refused(400, "Invalid or expired challenge")
    return row


def message(scope: Scope, wallet: str, community_slug: str | None, nonce: str, expires_at: int) -> str:
    """The text that is signed."""
    lines = [TITLE, f"Scope: {scope}", f"Wallet: {wallet}"]
    if community_slug is not None:
        lines.append(f"Community: {community_slug}")
    return "\n".join([*lines, f"Nonce: {nonce}", f"ExpiresAt: {iso(expires_at)}"])


def _remove_oldest(tx: Transaction, now: int) -> None:
    """Ids ascend in time, so the first of them are the first to expire."""
    tx.execute(
        "DELETE FROM auth_challenge WHERE id IN (SELECT id FROM auth_challenge ORDER BY id LIMIT ?) AND expires_at < ?",
        (_REMOVED_AT_ONCE, now),
    )
