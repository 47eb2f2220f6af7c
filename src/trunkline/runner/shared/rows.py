"""What launchers tell each other in rows: which agents there are, who is there, and who could run which."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from trunkline.base import jsontext
from trunkline.runner.known import KnownAgent
from trunkline.runner.shared.schema import NOW
from trunkline.runner.shared.sharing import LaunchersView, SeenAgent
from trunkline.store.database import Row, Transaction

#: A launcher says every second that it is there. One that does not say so any more is nobody's next one: sooner than
#: its leases end, or it would seem to run nothing, and be given more.
ALIVE_SECONDS = 4.0
#: And one that was silent for so long leaves no row.
FORGOTTEN_SECONDS = 15 * 60.0

_AGENTS = "SELECT agent_id, config, secrets, state, version FROM runner_agent"
_SEEN = (
    "SELECT known.agent_id, known.state, known.version, "  # noqa: S608 - fixed texts
    f"CASE WHEN lease.expires_at > {NOW} THEN lease.holder END AS holder, {NOW} - lease.expires_at AS free "
    "FROM runner_agent AS known JOIN runner_lease AS lease ON lease.agent_id = known.agent_id ORDER BY known.number"
)


def all_known(tx: Transaction) -> list[KnownAgent]:
    """All agents, in the order in which they became known."""
    return [_known(row) for row in tx.all(f"{_AGENTS} ORDER BY number")]


def one_known(tx: Transaction, agent_id: str) -> tuple[KnownAgent, int] | None:
    """An agent, and the version of its configuration."""
    row = tx.one(f"{_AGENTS} WHERE agent_id = ?", (agent_id,))
    return (_known(row), row["version"]) if row else None


def keep(tx: Transaction, agent: KnownAgent) -> int:
    """Add an agent, or change it; it is not stopped any more. Returns the version of its configuration."""
    config, secrets = jsontext.dumps(agent.config), jsontext.dumps([list(path) for path in agent.secrets])
    row = tx.one(
        "INSERT INTO runner_agent AS known (agent_id, config, secrets, state) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (agent_id) DO UPDATE SET state = excluded.state, config = excluded.config, "
        "secrets = excluded.secrets, version = known.version + CASE WHEN (known.config, known.secrets, known.state) = "
        "(excluded.config, excluded.secrets, excluded.state) THEN 0 ELSE 1 END RETURNING version",
        (agent.agent_id, config, secrets, "wanted" if agent.wanted else "named"),
    )
    tx.execute(
        f"INSERT INTO runner_lease (agent_id, fence, expires_at) VALUES (?, 0, {NOW}) "  # noqa: S608 - a fixed text
        "ON CONFLICT (agent_id) DO NOTHING",
        (agent.agent_id,),
    )
    return int(row["version"]) if row else 0


def want(tx: Transaction, agent_id: str, wanted: bool) -> None:
    """Say whether an agent is to run, wherever."""
    tx.execute("UPDATE runner_agent SET state = ? WHERE agent_id = ?", ("wanted" if wanted else "stopped", agent_id))


def is_to_run(tx: Transaction, agent_id: str) -> bool:
    """Whether nobody stopped an agent."""
    row = tx.one("SELECT state FROM runner_agent WHERE agent_id = ?", (agent_id,))
    return row is not None and row["state"] != "stopped"


def look(tx: Transaction, launcher: str, name: str, able: Sequence[str]) -> LaunchersView:
    """Say that a launcher is there and what it could run, and see what there is."""
    tx.execute(
        f"INSERT INTO runner_launcher (id, name, seen_at) VALUES (?, ?, {NOW}) "  # noqa: S608 - a fixed text
        "ON CONFLICT (id) DO UPDATE SET name = excluded.name, seen_at = excluded.seen_at",
        (launcher, name),
    )
    tx.execute(
        "INSERT INTO runner_candidate (launcher, agent_id) SELECT ?, unnest(?::TEXT[]) ON CONFLICT DO NOTHING",
        (launcher, list(able)),
    )
    tx.execute(
        "DELETE FROM runner_candidate WHERE launcher = ? AND NOT agent_id = ANY(?::TEXT[])", (launcher, list(able))
    )
    alive, forgotten = int(ALIVE_SECONDS * 1000), int(FORGOTTEN_SECONDS * 1000)
    tx.execute(f"DELETE FROM runner_launcher WHERE seen_at < {NOW} - ?", (forgotten,))  # noqa: S608 - a fixed text
    names = {
        row["id"]: row["name"]
        for row in tx.all(f"SELECT id, name FROM runner_launcher WHERE seen_at > {NOW} - ?", (alive,))  # noqa: S608 - the same
    }
    candidates = defaultdict[str, set[str]](set)
    for row in tx.all("SELECT launcher, agent_id FROM runner_candidate"):
        candidates[row["agent_id"]].add(row["launcher"])
    return LaunchersView(names, tuple(_seen(row, candidates[row["agent_id"]]) for row in tx.all(_SEEN)))


def leave(tx: Transaction, launcher: str) -> None:
    """Say that a launcher is no longer there."""
    tx.execute("DELETE FROM runner_launcher WHERE id = ?", (launcher,))


def _known(row: Row) -> KnownAgent:
    secrets = tuple(tuple(path) for path in jsontext.loads(row["secrets"]))
    return KnownAgent(row["agent_id"], jsontext.loads(row["config"]), secrets, row["state"] == "wanted")


def _seen(row: Row, candidates: set[str]) -> SeenAgent:
    # One that somebody stopped, nobody is to run.
    able = frozenset[str]() if row["state"] == "stopped" else frozenset(candidates)
    return SeenAgent(row["agent_id"], row["state"], row["version"], row["holder"], max(0.0, row["free"] / 1000), able)
