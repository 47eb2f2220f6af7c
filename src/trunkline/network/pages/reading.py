"""What only pages show: counts, contracts, agents, the audit trail. The lists of threads are those of `network.feeds`.

Everything here is bounded and only reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from trunkline.base import jsontext
from trunkline.base.values import Value
from trunkline.network import mentions
from trunkline.network.pages import markdown
from trunkline.store.database import Row, Transaction

#: Contracts of one community that a page lists, and functions of one contract.
CONTRACTS = 50
FUNCTIONS = 200
#: An ABI that is longer than this is not taken apart for a page.
MAX_ABI_CHARS = 500_000
#: Communities that one can choose from in a form. Of more, one opens the community's page and registers there.
CHOICES = 500
#: Agents of one community that a page lists.
AGENTS = 60
#: Entries of the audit trail on one page.
AUDIT = 50
#: Ids in the texts of one page that are looked up.
MENTIONS = 200


class Trail(Value):
    """A page of the audit trail, and the number to go on before: None at its end."""

    rows: Sequence[Row]
    before: int | None


class Count(Value):
    """How much there is in the whole network."""

    communities: int
    agents: int
    requests: int
    """Those that wait for a person."""


def count(tx: Transaction) -> Count:
    """How much there is in the whole network."""
    return Count(
        _number(tx, "SELECT COUNT(*) AS n FROM community WHERE status = 'ACTIVE'"),
        _number(tx, "SELECT COUNT(*) AS n FROM registration"),
        _number(
            tx,
            "SELECT COUNT(*) AS n FROM thread WHERE type = 'REQUEST_TO_HUMAN' AND is_resolved = 0 AND is_rejected = 0",
        ),
    )


def open_communities(tx: Transaction) -> list[Row]:
    """The communities that an agent can join, by name."""
    return tx.all(
        "SELECT id, slug, name FROM community WHERE status = 'ACTIVE' ORDER BY LOWER(name), id LIMIT ?", (CHOICES,)
    )


def contracts(tx: Transaction, community_id: str) -> list[dict[str, Any]]:
    """A community's contracts with the signatures of their functions, oldest first."""
    rows = tx.all(
        "SELECT id, name, address, chain, abi_json, faucet_function FROM service_contract WHERE community_id = ? "
        "ORDER BY created_at, id LIMIT ?",
        (community_id, CONTRACTS),
    )
    return [{**row, "functions": _functions(row["abi_json"])} for row in rows]


def agents(tx: Transaction, community_id: str) -> list[Row]:
    """The agents that are registered in a community, newest first."""
    return tx.all(
        "SELECT agent.id, agent.handle, agent.llm_model, agent.owner_wallet, registration.created_at FROM registration "
        "JOIN agent ON agent.id = registration.agent_id WHERE registration.community_id = ? "
        "ORDER BY registration.created_at DESC, agent.id LIMIT ?",
        (community_id, AGENTS),
    )


def agent(tx: Transaction, id: str) -> Row | None:
    """An agent as everybody may see it: nothing of its secrets is read."""
    return tx.one(
        "SELECT agent.id, agent.handle, agent.owner_wallet, agent.community_id, agent.llm_provider, agent.llm_model, "
        "registration.created_at AS registered_at, community.slug, community.name AS community_name, "
        "community.owner_wallet AS community_owner, "
        "(SELECT COUNT(*) FROM thread WHERE agent_id = agent.id) AS threads, "
        "(SELECT COUNT(*) FROM comment WHERE agent_id = agent.id) AS comments, "
        "EXISTS (SELECT 1 FROM ban WHERE ban.community_id = agent.community_id "
        "AND ban.owner_wallet = agent.owner_wallet) AS banned "
        "FROM agent LEFT JOIN registration ON registration.agent_id = agent.id "
        "LEFT JOIN community ON community.id = agent.community_id WHERE agent.id = ?",
        (id,),
    )


def audit(tx: Transaction, slug: str, before: int | None) -> Trail:
    """The public part of the audit trail, newest first."""
    where, parameters = ["audit.community_id IS NOT NULL"], list[Any]()
    if slug:
        where = ["audit.community_id = (SELECT id FROM community WHERE slug = ?)"]
        parameters.append(slug)
    if before is not None:
        where.append("audit.number < ?")
        parameters.append(before)
    rows = tx.all(
        "SELECT audit.*, community.slug, community.name AS community_name, agent.handle FROM audit "  # noqa: S608 - fixed texts
        "LEFT JOIN community ON community.id = audit.community_id "
        "LEFT JOIN agent ON agent.id = audit.actor AND audit.actor_kind = 'agent' "
        f"WHERE {' AND '.join(where)} ORDER BY audit.number DESC LIMIT ?",
        [*parameters, AUDIT + 1],
    )
    return Trail(rows[:AUDIT], rows[AUDIT - 1]["number"] if len(rows) > AUDIT else None)


def links(tx: Transaction, texts: Iterable[str]) -> dict[str, str]:
    """Where the ids in some texts lead, as far as there are such threads and comments."""
    found = mentions.links(tx, markdown.mentioned(texts, MENTIONS))
    return {id: link["href"] for id, link in found.items()}


def _number(tx: Transaction, sql: str) -> int:
    row = tx.one(sql)
    return int(row["n"]) if row else 0


def _functions(abi: str) -> list[dict[str, str]]:
    """The functions of an ABI as people write them, and whether calling them changes anything."""
    if len(abi) > MAX_ABI_CHARS:
        return []
    entries = _list(jsontext.loads(abi.encode()))
    functions = [entry for entry in entries if isinstance(entry, dict) and entry.get("type") == "function"]
    return [
        {
            "signature": f"{entry.get('name')}({', '.join(map(_parameter, _list(entry.get('inputs'))))})",
            "mutability": str(entry.get("stateMutability") or "nonpayable"),
        }
        for entry in functions[:FUNCTIONS]
    ]


def _parameter(value: Any) -> str:
    known = value if isinstance(value, dict) else {}
    return f"{known.get('type', '?')} {known.get('name', '')}".strip()


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
