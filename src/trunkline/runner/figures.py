"""What a launcher counts and tells of its agents, for Prometheus: numbers and ids, and never what an agent said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from trunkline.base.prometheus import metric
from trunkline.runner.contract import ACTIONS, READ_ACTIONS
from trunkline.runner.cycle import CycleReport

if TYPE_CHECKING:
    from trunkline.runner.fleet import Fleet

#: How a cycle came to its end. One that was stopped was ended from outside.
Outcome = Literal["success", "error", "stopped"]
_OUTCOMES: tuple[Outcome, ...] = ("success", "error", "stopped")
#: Stands for all that a brain can make up.
OTHER = "other"
_ACTIONS = (*ACTIONS, *READ_ACTIONS)
_STATES = ("running", "waiting", "standing_by", "failed", "stopped")


class RunnerFigures:
    """The figures of one launcher: of all that its agents did, also those that are stopped since."""

    def __init__(self) -> None:
        self._cycles: Counter[Outcome] = Counter()
        self._actions: Counter[tuple[str, str]] = Counter()
        self._sent = 0
        self._tokens: Counter[str] = Counter()

    def over(self, report: CycleReport, *, stopped: bool = False) -> None:
        """A cycle came to its end; one that failed or was stopped has its share, too."""
        self._cycles["stopped" if stopped else "success" if report.error is None else "error"] += 1
        for result in report.results:
            name = result.get("action")
            self._actions[name if name in _ACTIONS else OTHER, _outcome(result)] += 1
        self._sent += report.sent
        if report.usage is not None:
            self._tokens["input"] += report.usage.input_tokens or 0
            self._tokens["output"] += report.usage.output_tokens or 0

    def text(self, fleet: Fleet) -> str:
        """All of it, and how the agents are now."""
        return "".join((*_now(fleet), *self._counts()))

    def _counts(self) -> Iterator[str]:
        yield metric("runner_cycles_total", "counter", "Cycles that have ended.",
                     [({"outcome": each}, self._cycles[each]) for each in _OUTCOMES])  # fmt: skip
        yield metric("runner_actions_total", "counter", "Actions that agents decided on.",
                     [({"action": action, "outcome": outcome}, count)
                      for (action, outcome), count in self._actions.items()])  # fmt: skip
        yield metric("runner_transactions_sent_total", "counter", "Transactions that went out to a chain.",
                     [({}, self._sent)])  # fmt: skip
        yield metric("runner_tokens_total", "counter", "Tokens that agents' models have used, as far as they say.",
                     [({"kind": each}, self._tokens[each]) for each in ("input", "output")])  # fmt: skip


def _outcome(result: dict[str, Any]) -> str:
    if result.get("ok"):
        return "success"
    # One that was dropped was not understood, and names no community.
    return "unknown" if result.get("unknown") else "error" if "communitySlug" in result else "dropped"


def _now(fleet: Fleet) -> Iterator[str]:
    states = Counter("running" if each.running else "failed" for each in fleet.engines.values())
    for agent_id, resting in fleet.resting.items():
        states[
            "waiting" if resting.missing
            else "standing_by" if agent_id in fleet.elsewhere
            else "failed" if resting.reason
            else "stopped"
        ] += 1  # fmt: skip
    engines = fleet.engines.items()
    yield metric("runner_agents", "gauge", "Agents that this launcher knows.",
                 [({"state": each}, states[each]) for each in _STATES])  # fmt: skip
    yield metric("runner_agents_failing", "gauge", "Running agents whose last cycle failed.",
                 [({}, sum(each.failures > 0 for _, each in engines))])  # fmt: skip
    for name, meaning, times in (
        ("cycle", "When the last cycle of a running agent began.", [(id, each.ran) for id, each in engines]),
        ("success", "When the last good one of them ended.", [(id, each.succeeded) for id, each in engines]),
    ):
        yield metric(f"runner_last_{name}_timestamp_seconds", "gauge", meaning,
                     [({"agent": id}, at) for id, at in times if at is not None])  # fmt: skip
    shared = fleet.shared
    if shared is not None:
        yield metric("runner_database_up", "gauge", "Whether the launchers' database answers.", [({}, shared.is_up)])
        yield metric("runner_leases", "gauge", "Agents that this launcher has the right to run.",
                     [({}, shared.leases)])  # fmt: skip
