"""What people look at: how the agents of a fleet are, what was said, and which transactions wait for them."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from typing import Any

from trunkline.core.faults import Fault, UnknownCall
from trunkline.runner import commlog, config_parts
from trunkline.runner.chain.performer import TxPerformer
from trunkline.runner.fleet import Fleet, NotInFleet
from trunkline.tools.threads import in_thread

#: Entries of a log that one answer holds.
MAX_LOG = 200

_NONE = {"running": False, "state": "stopped", "lastError": None}


async def status(fleet: Fleet, agent_id: str | None = None) -> dict[str, Any]:
    """How all are, and one of them in particular: the one that is named, else the first that runs."""
    waiting = await in_thread(lambda _: _waiting(fleet))
    agents = [
        {
            **engine.status(),
            "runsAt": None,
            "waitingApprovals": waiting.get(each, 0),
            "secretsKept": fleet.kept.get(each, False),
        }
        for each, engine in fleet.engines.items()
    ]
    agents += [resting.status(fleet.elsewhere.get(each)) for each, resting in fleet.resting.items()]
    running = [each["agentId"] for each in agents if each["running"]]
    chosen = agent_id or next(iter(running), None) or next((each["agentId"] for each in agents), None)
    selected = next((each for each in agents if each["agentId"] == chosen), None)
    return {
        **(selected or _NONE),
        "runningAny": bool(running),
        "selectedAgentId": chosen,
        "selectedAgentRunning": chosen in running,
        "selectedAgentStatus": selected,
        "agentCount": len(agents),
        "runningAgentIds": running,
        "agents": agents,
    }


async def log(fleet: Fleet, agent_id: str, most: int) -> list[dict[str, Any]]:
    """The last entries of an agent's communication log.

    Raises:
        UnknownAgent: there is none.
        ConfigError: where it is cannot be told.
    """
    path = _log_path(fleet, agent_id)
    return await in_thread(lambda _: commlog.tail(path, min(most, MAX_LOG)))


async def approvals(fleet: Fleet) -> list[dict[str, Any]]:
    """Transactions that wait for a person, of all agents that run. Each `id` begins with the agent's."""
    return await in_thread(lambda _: list(_approvals(fleet)))


async def decide(fleet: Fleet, id: str, approve: bool) -> None:
    """A person's decision about one of them. The part of the id after the agent's is enough if only one has it.

    Raises:
        UnknownCall: nothing of that id waits, or several do.
    """
    await in_thread(lambda _: _decide(fleet, id, approve))


def _log_path(fleet: Fleet, agent_id: str) -> str:
    if agent_id in fleet.engines:
        return fleet.engines[agent_id].runner.log_path
    if agent_id not in fleet.resting:
        raise NotInFleet(agent_id)
    configured = {"log": fleet.resting[agent_id].known.config.get("log")}
    path = config_parts.resolved(configured, os.environ)["log"]
    if not isinstance(path, str) or not path.strip():
        return commlog.default_path(fleet.place.home, agent_id)
    return os.path.abspath(os.path.expanduser(path.strip()))


def _performers(fleet: Fleet) -> list[tuple[str, TxPerformer]]:
    found = [(agent_id, engine.runner.performer) for agent_id, engine in list(fleet.engines.items())]
    return [(agent_id, performer) for agent_id, performer in found if performer is not None]


def _approvals(fleet: Fleet) -> Iterator[dict[str, Any]]:
    for agent_id, performer in _performers(fleet):
        for each in performer.pending():
            yield {**each, "id": f"{agent_id}/{each['id']}", "agentId": agent_id}


def _waiting(fleet: Fleet) -> dict[str, int | None]:
    """How many wait for each agent; None where that cannot be told now."""
    found: dict[str, int | None] = {}
    for agent_id, performer in _performers(fleet):
        try:
            found[agent_id] = len(performer.pending())
        except (Fault, OSError, sqlite3.Error):
            found[agent_id] = None
    return found


def _decide(fleet: Fleet, id: str, approve: bool) -> None:
    # Two wallets may well give the same number.
    found = [
        (performer, each["id"])
        for agent_id, performer in _performers(fleet)
        for each in performer.pending()
        if id in (each["id"], f"{agent_id}/{each['id']}")
    ]
    if len(found) > 1:
        raise UnknownCall(
            f"Several agents have a transaction `{id[:80]}`.", hint="Put the agent's id before it: AGENT/ID."
        )
    if not found:
        raise UnknownCall(f"No transaction `{id[:80]}` waits for approval.")
    performer, number = found[0]
    performer.decide(number, approve)
