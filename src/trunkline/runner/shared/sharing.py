"""Who runs which agent, when several launchers could: by how many each runs already. Pure decisions.

Every launcher decides for itself, by what it sees. If two of them see different things, the worst that comes of it is
that an agent waits a moment: that it runs once is the lease's business.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from trunkline.base.values import Value

#: Whose turn it is may be slow, or unable after all: then anybody takes what nobody runs.
PATIENCE_SECONDS = 3.0


class SeenAgent(Value):
    """An agent as a launcher sees it."""

    agent_id: str
    state: str
    """`wanted`, `named` or `stopped`."""
    version: int
    """Of its configuration."""
    holder: str | None
    """The launcher that runs it."""
    free_seconds: float
    """How long nobody has."""
    candidates: frozenset[str]
    """Those that could."""


class LaunchersView(Value):
    """What a launcher sees."""

    names: Mapping[str, str]
    """The launchers that are there, by their ids."""
    agents: tuple[SeenAgent, ...]

    def counts(self) -> Counter[str]:
        """How many each of them runs."""
        counted = Counter(agent.holder for agent in self.agents if agent.holder in self.names)
        return Counter({id: counted[id] for id in self.names})


def to_take(me: str, seen: LaunchersView) -> list[str]:
    """The agents that a launcher takes now: whoever runs least is the next one."""
    counts, taken = seen.counts(), list[str]()
    for agent in seen.agents:
        able = agent.candidates & seen.names.keys()
        if agent.holder is not None or not able:
            continue
        # Also of those that this launcher could not run: the others count them, too.
        chosen = _next(able, counts)
        counts[chosen] += 1
        if chosen == me or (me in able and agent.free_seconds > PATIENCE_SECONDS):
            taken.append(agent.agent_id)
    return taken


def to_give(me: str, seen: LaunchersView, idle: Collection[str]) -> str | None:
    """An agent that a launcher hands over, if somebody else has fewer even with it. One at a time."""
    counts = seen.counts()
    for agent in seen.agents:
        if agent.holder != me or agent.agent_id not in idle:
            continue
        others = (agent.candidates & seen.names.keys()) - {me}
        if others and counts[_next(others, counts)] + 1 < counts[me]:
            return agent.agent_id
    return None


def _next(able: Iterable[str], counts: Mapping[str, int]) -> str:
    """Who runs least; of several, all choose the same one."""
    return min(able, key=lambda id: (counts[id], id))
