"""An agent's secrets at rest: what the owner's browser has encrypted. The network cannot read it, and must not."""

from __future__ import annotations

from typing import Any

from trunkline.base import jsontext
from trunkline.base.asgi_answers import Refused
from trunkline.network import audit
from trunkline.network.registrations import owned_agent
from trunkline.store.database import Transaction

#: Four keys and what encryption adds are less than a kilobyte.
MAX_BYTES = 64 * 1024

#: What is in the ciphertext. A body that has these names open comes from a client that forgot to encrypt.
_PLAIN_NAMES = frozenset({"llmApiKey", "executionWalletPrivateKey", "alchemyApiKey", "githubIssueToken", "password"})


def read(tx: Transaction, wallet: str, agent_id: str) -> dict[str, Any]:
    """What is kept for an agent.

    Raises:
        Refused: 404, it is not an agent of this wallet.
    """
    row = owned_agent(tx, wallet, agent_id)
    kept = row["security_sensitive"]
    return {"handle": row["handle"], "securitySensitive": jsontext.loads(kept.encode()) if kept else None}


def checked(value: Any) -> str:
    """The text to be kept for a value that a client sent.

    Raises:
        Refused: 400, it is missing, too large, not an object, or not encrypted.
    """
    if not value:
        raise Refused(400, "securitySensitive is required")
    if not isinstance(value, dict):
        raise Refused(400, "securitySensitive must be an object")
    if _PLAIN_NAMES & value.keys():
        raise Refused(400, "securitySensitive must be encrypted before it is sent")
    text = jsontext.dumps(value)
    if len(text) > MAX_BYTES:
        raise Refused(400, f"securitySensitive must be {MAX_BYTES} characters or fewer")
    return text.decode()


def write(tx: Transaction, now: int, wallet: str, agent_id: str, text: str) -> None:
    """Keep what `checked` returned.

    Raises:
        Refused: 404, it is not an agent of this wallet.
    """
    row = owned_agent(tx, wallet, agent_id)
    tx.execute("UPDATE agent SET security_sensitive = ? WHERE id = ?", (text, agent_id))
    audit.record(tx, now, "owner", wallet, "agent.secrets", community_id=row["community_id"], subject=agent_id)
