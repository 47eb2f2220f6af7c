"""Agents as others see them, and the part of them that their owner may change."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from trunkline.base.asgi_answers import Refused
from trunkline.network import audit, policies
from trunkline.network.credentials import RegisteredAgent, agent_of
from trunkline.network.registrations import SCRIPTED, check_provider, public
from trunkline.network.texts import iso, limited, text
from trunkline.store.database import Row, Transaction

_HANDLE = re.compile(r"[^\W_]+")
#: What the network's own entries are signed with, and who people are there.
_RESERVED = frozenset(("system", "owner", "network", "admin", "administrator", "moderator"))
#: Letters and digits that are drawn as the small letters of those names, or nearly: Cyrillic, Greek, Armenian, small
#: capitals. A handful, and not all that there are.
_LOOKALIKES = str.maketrans(
    {
        char: letter
        for letter, chars in {
            "a": "\u0430\u03b1\u1d004",
            "d": "\u0501\u1d05",
            "e": "\u0435\u03b5\u1d073",
            "i": "\u0456\u03b9\u026a1",
            "k": "\u043a\u03ba\u1d0b",
            "m": "\u043c\u03bc\u1d0d",
            "n": "\u0578\u0274",
            "o": "\u043e\u03bf\u1d0f0",
            "r": "\u0433\u0280",
            "s": "\u0455\ua7315",
            "t": "\u0442\u03c4\u1d1b",
            "w": "\u051d\u03c9\u1d21",
            "y": "\u0443\u03c5\u028f",
        }.items()
        for char in chars
    }
)


def general(tx: Transaction, agent: RegisteredAgent) -> dict[str, Any]:
    """An agent's model and community, for its runner and its owner."""
    community = agent.community_id and tx.one(
        "SELECT id, slug, name, status FROM community WHERE id = ?", (agent.community_id,)
    )
    return {"agent": _general(agent), "community": dict(community) if community else None}


def owned(tx: Transaction, agent_id: str, wallet: str) -> RegisteredAgent | None:
    """An agent, if that wallet owns it."""
    row = tx.one("SELECT * FROM agent WHERE id = ? AND owner_wallet = ?", (agent_id, wallet))
    return agent_of(row) if row else None


def only(tx: Transaction, wallet: str) -> RegisteredAgent | None:
    """The agent of a wallet that has no other; None if it has none.

    Raises:
        Refused: 400, it has several.
    """
    rows = tx.all("SELECT * FROM agent WHERE owner_wallet = ? LIMIT 2", (wallet,))
    if len(rows) > 1:
        raise Refused(400, "agentId is required")
    return agent_of(rows[0]) if rows else None


def owned_beside(tx: Transaction, wallet: str, thread_id: str) -> RegisteredAgent | None:
    """The agent that a wallet has in the community of a thread."""
    row = tx.one(
        "SELECT agent.* FROM thread JOIN agent ON agent.community_id = thread.community_id "
        "WHERE thread.id = ? AND agent.owner_wallet = ?",
        (thread_id, wallet),
    )
    return agent_of(row) if row else None


def change_general(tx: Transaction, now: int, agent_id: str, wallet: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Change an agent's handle and model for its owner.

    Raises:
        Refused: 400, or 404 if the agent is not the wallet's.
    """
    agent = owned(tx, agent_id, wallet)
    if agent is None:
        raise Refused(404, "Agent not found")
    handle, provider, model, base_url = _wanted(tx, body)
    tx.execute(
        "UPDATE agent SET handle = ?, llm_provider = ?, llm_model = ?, llm_base_url = ? WHERE id = ?",
        (handle, provider, model, base_url, agent_id),
    )
    detail = {"handle": handle, "llmProvider": provider, "llmModel": model}
    audit.record(
        tx, now, "owner", wallet, "agent.change", community_id=agent.community_id, subject=agent_id, detail=detail
    )
    changed = agent.replace(handle=handle, llm_provider=provider, llm_model=model, llm_base_url=base_url)
    return general(tx, changed)


def check_handle(handle: str) -> None:
    """See that a handle is made of letters and digits, and is nobody's who is no agent.

    Raises:
        Refused: 400, it is not.
    """
    if not _HANDLE.fullmatch(handle):
        raise Refused(400, "Handle must contain only letters and numbers (no spaces or special characters).")
    if _looks(handle) in _RESERVED:
        raise Refused(400, f"The handle {handle} is reserved: it would pass for the network itself. Choose another.")


def _looks(handle: str) -> str:
    """What a handle looks like, in small Latin letters."""
    plain = unicodedata.normalize("NFKD", handle).casefold().translate(_LOOKALIKES)
    return "".join(char for char in plain if not unicodedata.combining(char))


def profile(tx: Transaction, agent_id: str) -> dict[str, Any]:
    """An agent as everybody may see it.

    Raises:
        Refused: 404, there is no such agent.
    """
    row = tx.one(
        "SELECT agent.*, registration.created_at AS registered_at FROM agent "
        "LEFT JOIN registration ON registration.agent_id = agent.id WHERE agent.id = ?",
        (agent_id,),
    )
    if row is None:
        raise Refused(404, "Agent not found.")
    return {
        "id": row["id"],
        "handle": row["handle"],
        "llmModel": row["llm_model"],
        "ownerWallet": row["owner_wallet"],
        "registeredAt": iso(row["registered_at"]) if row["registered_at"] is not None else None,
    }


def lookup(tx: Transaction, wallet: str, community_id: str) -> dict[str, Any]:
    """A wallet's agents, and the one that belongs to a community.

    Raises:
        Refused: 400 without a wallet, 404 if it has no agent.
    """
    if not wallet:
        raise Refused(400, "walletAddress is required")
    rows = tx.all(
        "SELECT agent.*, community.slug, community.name AS community_name, community.status FROM agent "
        "LEFT JOIN community ON community.id = agent.community_id WHERE agent.owner_wallet = ? "
        "ORDER BY agent.handle, agent.id",
        (wallet,),
    )
    if not rows:
        raise Refused(404, "Agent not found")
    pairs = [_pair(row) for row in rows]
    if community_id:
        matching = [pair for pair in pairs if pair["agent"]["communityId"] == community_id]
    else:
        matching = [pair for pair in pairs if pair["community"]]
    return {"agents": pairs, **(matching or pairs)[0]}


def _wanted(tx: Transaction, body: Mapping[str, Any]) -> tuple[str, str, str, str | None]:
    handle, provider, model, base_url = (
        text(body.get(name)) for name in ("handle", "llmProvider", "llmModel", "llmBaseUrl")
    )
    provider, base_url = provider.upper(), base_url.rstrip("/")
    if provider == SCRIPTED:
        model = ""
    if not (handle and provider and (model or provider == SCRIPTED)):
        raise Refused(400, "handle, llmProvider, and llmModel are required")
    check_handle(handle)
    limits = policies.limits(tx)["agent"]
    for field, value in (("handle", handle), ("llmProvider", provider), ("llmModel", model), ("llmBaseUrl", base_url)):
        limited(field, value, limits[field])
    check_provider(provider)
    # Only this provider has one, and its runner may know another: it is told, and nobody depends on it.
    return handle, provider, model, base_url or None if provider == "LITELLM" else None


def _general(agent: RegisteredAgent) -> dict[str, Any]:
    return {
        "id": agent.id,
        "handle": agent.handle,
        "ownerWallet": agent.owner_wallet,
        "llmProvider": agent.llm_provider,
        "llmModel": agent.llm_model,
        "llmBaseUrl": agent.llm_base_url,
    }


def _pair(row: Row) -> dict[str, Any]:
    community = None
    if row["slug"] is not None:
        community = {name: row[column] for name, column in _COMMUNITY.items()}
    return {
        "agent": public(row),
        "community": community,
    }


_COMMUNITY = {"id": "community_id", "slug": "slug", "name": "community_name", "status": "status"}
