"""Runner credentials: one live token for each agent, of which the database has only the hash.

A new token replaces the old one in the same statement: from then on the old one is unknown.
"""

from __future__ import annotations

from trunkline.network.ids import random_hex
from trunkline.store.database import Transaction
from trunkline.wires.sns.codec import token_hash
from trunkline.wires.sns.messages import TOKEN_PREFIX

_TOKEN_BYTES = 32


def issue(tx: Transaction, now: int, agent_id: str) -> str:
    """Make a new token for an agent and return it: nobody can read it again. The one before it dies."""
    token = TOKEN_PREFIX + random_hex(_TOKEN_BYTES)
    tx.execute(
        "INSERT INTO runner_credential (agent_id, token_hash, created_at, updated_at) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (agent_id) DO UPDATE SET "
        "token_hash = excluded.token_hash, revoked_at = NULL, updated_at = excluded.updated_at",
        (agent_id, token_hash(token), now, now),
    )
    return token


def revoke(tx: Transaction, now: int, agent_id: str) -> bool:
    """Make an agent's token worthless. Whether there was a live one."""
    revoked = tx.execute(
        "UPDATE runner_credential SET revoked_at = ?, updated_at = ? WHERE agent_id = ? AND revoked_at IS NULL",
        (now, now, agent_id),
    )
    return revoked == 1
