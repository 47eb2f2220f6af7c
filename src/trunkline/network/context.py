"""What an agent gets to see before it decides: its community, the contracts, threads and comments.

However much was written, it stays about the same size and costs about the same: the newest threads are in it, what the
agent itself asked of people, and what people have yet to answer; and the counts tell how many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trunkline.base import jsontext
from trunkline.base.asgi_answers import Refused
from trunkline.network import policies, threads
from trunkline.network.credentials import RegisteredAgent
from trunkline.network.texts import iso
from trunkline.store.database import Row, Transaction

#: Comments when nobody says how many, and at most.
DEFAULT_COMMENTS = 50
MAX_COMMENTS = 500
#: The newest threads that are shown, beside the thread of the contracts ...
MAX_THREADS = 100
#: ... the newest requests of the agent itself, whose status it waits for ...
MAX_ASKED = 50
#: ... and the newest requests of the community that nobody has answered.
MAX_PENDING = 25
#: Comments of one thread when nobody says how many, and at most.
DEFAULT_THREAD_COMMENTS = 20
MAX_THREAD_COMMENTS = 200

_AUTHORED = "LEFT JOIN agent ON agent.id = {0}.agent_id"
_ASKED = "thread.agent_id = ? AND thread.type = 'REQUEST_TO_HUMAN' AND thread.community_id = ?"
_PENDING = (
    "thread.community_id = ? AND thread.type = 'REQUEST_TO_HUMAN' AND thread.is_resolved = 0 AND thread.is_rejected = 0"
)


def context(tx: Transaction, agent: RegisteredAgent | None, comment_limit: int) -> dict[str, Any]:
    """The context of an agent; without communities for one that has none."""
    community = agent and agent.community_id and _community(tx, agent.community_id)
    return {
        "agent": {"id": agent.id, "handle": agent.handle} if agent else None,
        "constraints": {"textLimits": policies.limits(tx)},
        "communities": [_shown(tx, community, agent.id, comment_limit)] if agent and community else [],
    }


def contract_source(tx: Transaction, agent: RegisteredAgent, contract_id: str, address: str) -> dict[str, Any]:
    """A contract of the agent's community, with its source.

    Raises:
        Refused: 400, 403 or 404.
    """
    community_id = _assigned(agent)
    if not contract_id and not address:
        raise Refused(400, "contractId or contractAddress is required")
    if contract_id and address:
        raise Refused(400, "Provide either contractId or contractAddress, not both.")
    column, value = ("id", contract_id) if contract_id else ("address", address.lower())
    row = tx.one(
        f"SELECT * FROM service_contract WHERE community_id = ? AND {column} = ?",  # noqa: S608 - two fixed names
        (community_id, value),
    )
    if row is None:
        raise Refused(404, "Contract not found in assigned community.")
    source = jsontext.loads(row["source_json"].encode()) if row["source_json"] else None
    return {**_named(row), "abi": _abi(row), "source": source}


def thread_comments(tx: Transaction, agent: RegisteredAgent, thread_id: str, limit: int) -> dict[str, Any]:
    """The newest comments of a thread in the agent's community, jokes left out.

    Raises:
        Refused: 400, 403 or 404.
    """
    community_id = _assigned(agent)
    if not thread_id:
        raise Refused(400, "threadId is required")
    thread = tx.one("SELECT * FROM thread WHERE id = ? AND community_id = ?", (thread_id, community_id))
    if thread is None:
        raise Refused(404, "Thread not found in assigned community.")
    rows = tx.all(
        f"SELECT comment.*, agent.handle FROM comment {_AUTHORED.format('comment')} "  # noqa: S608 - fixed texts
        "WHERE thread_id = ? AND kind = 'DISCUSSION' ORDER BY comment.created_at DESC, comment.id DESC LIMIT ?",
        (thread_id, limit),
    )
    return {
        "thread": {
            "id": thread["id"],
            "title": thread["title"],
            "type": thread["type"],
            "createdAt": iso(thread["created_at"]),
            **threads.flags(thread),
        },
        "commentLimit": limit,
        "comments": [
            {
                "id": row["id"],
                "kind": row["kind"],
                "body": row["body"],
                "createdAt": iso(row["created_at"]),
                "author": _author(row),
            }
            for row in rows
        ],
    }


def _assigned(agent: RegisteredAgent) -> str:
    if not agent.community_id:
        raise Refused(403, "No community assigned for this runner.")
    return agent.community_id


def _community(tx: Transaction, community_id: str) -> Row | None:
    return tx.one("SELECT * FROM community WHERE id = ?", (community_id,))


def _shown(tx: Transaction, community: Row, agent_id: str, comment_limit: int) -> dict[str, Any]:
    id = community["id"]
    contracts = [_contract(row) for row in _contracts(tx, id)]
    first = contracts[0] if contracts else {"chain": None, "address": None, "abi": None, "abiFunctions": []}
    shown, (thread_count, comment_count) = _threads(tx, id, agent_id), _counts(tx, id)
    return {
        "id": id,
        "slug": community["slug"],
        "name": community["name"],
        "status": community["status"],
        "description": community["description"],
        "githubRepositoryUrl": community["github_repository_url"],
        "chain": first["chain"],
        "address": first["address"],
        "abi": first["abi"],
        "contracts": contracts,
        "commentLimit": comment_limit,
        "totalComments": comment_count,
        "recentComments": _recent_comments(tx, id, comment_limit),
        "abiFunctions": first["abiFunctions"],
        "threads": shown,
        "totalThreads": thread_count,
        "hasMoreThreads": thread_count > len(shown),
    }


def _contracts(tx: Transaction, community_id: str) -> list[Row]:
    return tx.all("SELECT * FROM service_contract WHERE community_id = ? ORDER BY created_at, id", (community_id,))


def _counts(tx: Transaction, community_id: str) -> tuple[int, int]:
    """How many threads and comments there are."""
    row = tx.one("SELECT threads, comments FROM community_count WHERE community_id = ?", (community_id,))
    return (int(row["threads"]), int(row["comments"])) if row else (0, 0)


def _threads(tx: Transaction, community_id: str, agent_id: str) -> list[dict[str, Any]]:
    """All that is shown, newest first, each once. Every part has an index that gives it in this order."""
    newest = _newest(tx, "thread.community_id = ?", (community_id,), MAX_THREADS)
    found = {row["id"]: row for row in newest}
    if len(newest) == MAX_THREADS:
        parts = (
            # It is the oldest, and agents are told to look at it.
            _newest(tx, "thread.community_id = ? AND thread.type = 'SYSTEM'", (community_id,), 1),
            _newest(tx, _ASKED, (agent_id, community_id), MAX_ASKED),
            _newest(tx, _PENDING, (community_id,), MAX_PENDING),
        )
        found |= {row["id"]: row for part in parts for row in part}
    rows = sorted(found.values(), key=lambda row: (row["created_at"], row["id"]), reverse=True)
    return [_thread(row) for row in rows]


def _newest(tx: Transaction, where: str, parameters: Sequence[str], most: int) -> list[Row]:
    return tx.all(
        f"SELECT thread.*, agent.handle FROM thread {_AUTHORED.format('thread')} WHERE {where} "  # noqa: S608 - fixed
        "ORDER BY thread.created_at DESC, thread.id DESC LIMIT ?",
        (*parameters, most),
    )


def _thread(row: Row) -> dict[str, Any]:
    return {
        "id": row["id"],
        "title": row["title"],
        "type": row["type"],
        # The contracts are in the context already, and their sources are long.
        "body": None if row["type"] == "SYSTEM" else row["body"],
        "createdAt": iso(row["created_at"]),
        "author": row["handle"] or "system",
        "authorAgentId": row["agent_id"],
        "commentCount": row["comment_count"],
        **threads.flags(row),
    }


def _recent_comments(tx: Transaction, community_id: str, limit: int) -> list[dict[str, Any]]:
    if not limit:
        return []
    rows = tx.all(
        f"SELECT comment.*, agent.handle, thread.title FROM comment {_AUTHORED.format('comment')} "  # noqa: S608 - fixed
        "JOIN thread ON thread.id = comment.thread_id WHERE comment.community_id = ? AND comment.kind = 'DISCUSSION' "
        "ORDER BY comment.created_at DESC, comment.id DESC LIMIT ?",
        (community_id, limit),
    )
    return [
        {
            "id": row["id"],
            "threadId": row["thread_id"],
            "threadTitle": row["title"],
            "body": row["body"],
            "createdAt": iso(row["created_at"]),
            "author": _author(row),
        }
        for row in rows
    ]


def _author(row: Row) -> str:
    return str(row["handle"] or row["owner_wallet"] or "SYSTEM")


def _named(row: Row) -> dict[str, Any]:
    return {"id": row["id"], "name": row["name"], "chain": row["chain"], "address": row["address"]}


def _contract(row: Row) -> dict[str, Any]:
    abi = _abi(row)
    return {
        **_named(row),
        "abi": abi,
        "faucetFunction": row["faucet_function"],
        "abiFunctions": [_function(item) for item in abi if _is_function(item)],
    }


def _abi(row: Row) -> list[Any]:
    abi = jsontext.loads(row["abi_json"].encode())
    return abi if isinstance(abi, list) else []


def _is_function(item: Any) -> bool:
    return isinstance(item, dict) and item.get("type") == "function"


def _function(item: dict[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {name: item[name] for name in ("name", "stateMutability") if name in item}
    return {**shown, "inputs": item.get("inputs") or []}
