"""Agents and their owners: one agent for each wallet in each community.

Unregistering takes an agent's power to act; its words and its settings stay, and registering it again finds them.
"""

from __future__ import annotations

from typing import Any

from trunkline.base.asgi_answers import Refused
from trunkline.base.values import Value
from trunkline.network import audit, bans, rotation
from trunkline.network.communities import one_at_a_time, open_community
from trunkline.network.ids import new_id
from trunkline.network.texts import iso
from trunkline.store.database import Row, Transaction

DEFAULT_PROVIDER = "GEMINI"
#: Whose provider this is has no model: a script decides. What it writes is not said to be a model's.
SCRIPTED = "SCRIPTED"
#: A proxy has what its owner put behind it; most have this maker's.
_BEHIND_A_PROXY = {"LITELLM": "OPENAI"}
_FOR_TESTS = ("mock",)

#: Agents in one answer. A wallet has one in each community that it takes part in.
MAX_LISTED = 500


class Wish(Value):
    """What an owner wants to register. Without a provider or a model, those that the agent has, or the default."""

    handle: str
    llm_provider: str | None = None
    llm_model: str | None = None


def check_provider(provider: str) -> None:
    """See that a provider is one that runners know.

    Raises:
        Refused: 400, nobody knows it.
    """
    from trunkline.models.providers import NAMES

    known = (SCRIPTED, *_BEHIND_A_PROXY, *(name.upper() for name in NAMES if name not in _FOR_TESTS))
    if provider not in known:
        raise Refused(400, f"llmProvider must be one of {', '.join(sorted(known))}")


def model_for(provider: str) -> str:
    """A model of the provider's that is sold now.

    Raises:
        Refused: 400, it has no usual one.
    """
    from trunkline.models.discover import usual_model

    model = usual_model(_BEHIND_A_PROXY.get(provider, provider))
    if model is None:
        raise Refused(400, f"llmModel is required: {provider} has no usual model")
    return model


def register(tx: Transaction, now: int, wallet: str, community_id: str, wish: Wish) -> tuple[Row, Row, bool]:
    """Register a wallet's agent, or change what is registered: the agent, its community, and whether it was before.

    Raises:
        Refused: 404 if there is no such community, 403 if it is closed or the wallet is banned there, 400 for a
            provider that nobody knows.
    """
    one_at_a_time(tx, community_id)
    community = open_community(tx, community_id)
    if bans.is_banned(tx, community_id, wallet):
        raise Refused(403, "Agent is banned in this community")
    known = agent_in(tx, wallet, community_id)
    provider = (wish.llm_provider or (known["llm_provider"] if known else DEFAULT_PROVIDER)).upper()
    if wish.llm_provider:
        check_provider(provider)
    kept = known["llm_model"] if known and known["llm_provider"] == provider else None
    model = "" if provider == SCRIPTED else wish.llm_model or kept or model_for(provider)
    if known is None:
        agent_id = new_id()
        tx.execute(
            "INSERT INTO agent (id, handle, owner_wallet, community_id, llm_provider, llm_model, created_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (agent_id, wish.handle, wallet, community_id, provider, model, now),
        )
    else:
        agent_id = known["id"]
        tx.execute(
            "UPDATE agent SET handle = ?, llm_provider = ?, llm_model = ? WHERE id = ?",
            (wish.handle, provider, model, agent_id),
        )
    added = tx.execute(
        "INSERT INTO registration (agent_id, community_id, created_at) VALUES (?, ?, ?) "
        "ON CONFLICT (agent_id) DO NOTHING",
        (agent_id, community_id, now),
    )
    detail = {"handle": wish.handle}
    audit.record(tx, now, "owner", wallet, "agent.register", community_id=community_id, subject=agent_id, detail=detail)
    return owned_agent(tx, wallet, agent_id), community, added == 0


def unregister(tx: Transaction, now: int, wallet: str, community_id: str) -> Row:
    """Take the registration, the nonces and the credential of a wallet's agent away, and return the agent.

    Raises:
        Refused: 404, the wallet has no registered agent there.
    """
    agent = agent_in(tx, wallet, community_id)
    if agent is None:
        raise Refused(404, "Agent not found")
    if not tx.execute("DELETE FROM registration WHERE agent_id = ?", (agent["id"],)):
        raise Refused(404, "Agent is not registered in this community")
    tx.execute("DELETE FROM agent_nonce WHERE agent_id = ?", (agent["id"],))
    rotation.revoke(tx, now, agent["id"])
    audit.record(tx, now, "owner", wallet, "agent.unregister", community_id=community_id, subject=agent["id"])
    return agent


def owned_agent(tx: Transaction, wallet: str, agent_id: str) -> Row:
    """An agent that belongs to a wallet.

    Raises:
        Refused: 404, there is none, or it belongs to somebody else: they need not know that there is one.
    """
    row = tx.one("SELECT * FROM agent WHERE id = ?", (agent_id,))
    if row is None or (row["owner_wallet"] or "").lower() != wallet:
        raise Refused(404, "Agent not found")
    return row


def agent_in(tx: Transaction, wallet: str, community_id: str) -> Row | None:
    """The agent of a wallet in a community, registered or not."""
    return tx.one("SELECT * FROM agent WHERE owner_wallet = ? AND community_id = ?", (wallet, community_id))


def is_registered(tx: Transaction, agent_id: str) -> bool:
    """Whether an agent is registered now."""
    return tx.one("SELECT 1 AS found FROM registration WHERE agent_id = ?", (agent_id,)) is not None


def mine(tx: Transaction, wallet: str) -> list[dict[str, Any]]:
    """The registered agents of a wallet with their communities, by handle."""
    rows = tx.all(
        "SELECT agent.*, community.slug, community.name, community.status, credential.updated_at AS issued_at "
        "FROM agent JOIN registration ON registration.agent_id = agent.id "
        "JOIN community ON community.id = agent.community_id "
        "LEFT JOIN runner_credential AS credential "
        "ON credential.agent_id = agent.id AND credential.revoked_at IS NULL "
        "WHERE agent.owner_wallet = ? ORDER BY agent.handle, agent.id LIMIT ?",
        (wallet, MAX_LISTED),
    )
    return [
        {
            "id": row["id"],
            "handle": row["handle"],
            "ownerWallet": row["owner_wallet"],
            "llmProvider": row["llm_provider"],
            "llmModel": row["llm_model"],
            "hasSecuritySensitive": row["security_sensitive"] is not None,
            "credentialIssuedAt": iso(row["issued_at"]) if row["issued_at"] is not None else None,
            "community": {
                "id": row["community_id"],
                "slug": row["slug"],
                "name": row["name"],
                "status": row["status"],
            },
        }
        for row in rows
    ]


def shown(row: Row) -> dict[str, Any]:
    """An agent in the words of the API, without its secrets."""
    return {
        **public(row),
        "llmBaseUrl": row["llm_base_url"],
        "hasSecuritySensitive": row["security_sensitive"] is not None,
    }


def public(row: Row) -> dict[str, Any]:
    """An agent as everybody may see it."""
    return {
        "id": row["id"],
        "handle": row["handle"],
        "ownerWallet": row["owner_wallet"],
        "communityId": row["community_id"],
        "llmProvider": row["llm_provider"],
        "llmModel": row["llm_model"],
    }
