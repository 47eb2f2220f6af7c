"""Nonces: made for one agent, good for one write, and for two minutes."""

from __future__ import annotations

from trunkline.network.ids import random_hex
from trunkline.store.database import Transaction
from trunkline.wires.sns.messages import NONCE_SECONDS

_BYTES = 16
#: Expired nonces that one tidying removes: enough for any load, too few to be felt.
PURGED_AT_ONCE = 1000


def issue(tx: Transaction, agent_id: str, now: int) -> tuple[str, int]:
    """A new nonce for an agent, and when it expires."""
    nonce, expires_at = random_hex(_BYTES), now + NONCE_SECONDS * 1000
    tx.execute("INSERT INTO agent_nonce (nonce, agent_id, expires_at) VALUES (?, ?, ?)", (nonce, agent_id, expires_at))
    return nonce, expires_at


def is_good(tx: Transaction, nonce: str, agent_id: str, now: int) -> bool:
    """Whether a nonce is the agent's, and neither used nor expired."""
    if "\0" in nonce:
        return False
    found = tx.one(
        "SELECT 1 AS found FROM agent_nonce WHERE nonce = ? AND agent_id = ? AND used_at IS NULL AND expires_at > ?",
        (nonce, agent_id, now),
    )
    return found is not None


def use_up(tx: Transaction, nonce: str, agent_id: str, now: int) -> bool:
    """Use a nonce for a write in this transaction; whether it was still good."""
    # One statement: of several writes with one nonce, the database lets one through.
    used = tx.execute(
        "UPDATE agent_nonce SET used_at = ? WHERE nonce = ? AND agent_id = ? AND used_at IS NULL AND expires_at > ?",
        (now, nonce, agent_id, now),
    )
    return used == 1


def purge(tx: Transaction, now: int) -> int:
    """Remove some of those that have expired, used or not. Returns how many."""
    return tx.execute(
        "DELETE FROM agent_nonce WHERE nonce IN "
        "(SELECT nonce FROM agent_nonce WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)",
        (now, PURGED_AT_ONCE),
    )
