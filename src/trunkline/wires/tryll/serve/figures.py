"""What a server counts of its clients, for Prometheus.

    figures = ServerFigures()
    server = TryllServer(host, settings, figures)
    ...
    page = figures.text(server)

Numbers and the names of models only: never what anybody said, nor what a client calls its things. A client of the Mock
engine may call a model as it likes: beyond `MAX_MODELS` of such names all others count as one. The models that the
server has are always told apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal

from trunkline.base import memory
from trunkline.base.prometheus import Histogram, histogram, metric
from trunkline.core.graph.ordinals import TurnStatus
from trunkline.core.graph.turns import Ending

if TYPE_CHECKING:
    from trunkline.wires.tryll.host import HostedModels
    from trunkline.wires.tryll.serve.server import TryllServer
    from trunkline.wires.tryll.serve.turns import ServedTurn

#: Names of models that are told apart although the server has none that is called so.
MAX_MODELS = 100
#: The longest that is told.
MAX_NAME = 100
#: What answers, as catalogs call it.
_KIND = "llm"
#: Stands for all others.
OTHER = "other"
#: Seconds: from what feels like at once to what nobody waits for.
BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)

_OUTCOMES = {TurnStatus.SUCCESS: "success", TurnStatus.ERROR: "error", TurnStatus.CANCELLED: "cancelled"}

#: Why a client was not let in.
Reason = Literal["clients", "token", "version", "stopping"]
#: What a connection had enough of.
Limit = Literal["agents", "turns"]


class ServerFigures:
    """The figures of one server."""

    def __init__(self) -> None:
        self.refused: dict[Reason, int] = {"clients": 0, "token": 0, "version": 0, "stopping": 0}
        self.limited: dict[Limit, int] = {"agents": 0, "turns": 0}
        self._known: set[str] = set()
        self._invented = 0
        self._turns: Counter[tuple[str, str]] = Counter()
        self._tokens: Counter[tuple[str, str]] = Counter()
        self._speed: dict[str, float] = {}
        self._first: dict[str, Histogram] = {}
        self._whole: dict[str, Histogram] = {}
        self._waited: dict[str, Histogram] = {}

    def over(self, turn: ServedTurn, ending: Ending, models: HostedModels) -> None:
        """A turn has ended. `models`: those of the server."""
        generated: Counter[str] = Counter()
        for model, tokens in ending.models:
            generated[self._label(model, models)] += tokens
        # A turn is told once, under the model that said most in it.
        model = max(generated, key=lambda name: generated[name], default="")
        self._turns[model, _OUTCOMES.get(ending.status, "error")] += 1
        for name, tokens in generated.items():
            self._tokens[name, "generated"] += tokens
        self._tokens[model, "prompt"] += ending.tokens_prompt
        self._tokens[model, "cached"] += ending.tokens_cached
        _add(self._whole, model, turn.seconds)
        _add(self._waited, model, ending.waited)
        if turn.first_word is not None:
            _add(self._first, model, turn.first_word)
        if (speed := turn.speed(ending.tokens_generated)) is not None:
            self._speed[model] = speed

    def _label(self, model: str, models: HostedModels) -> str:
        label = model[:MAX_NAME]
        if label not in self._known:
            if model not in models.named(_KIND):
                if self._invented >= MAX_MODELS:
                    return OTHER
                self._invented += 1
            self._known.add(label)
        return label

    def text(self, server: TryllServer) -> str:
        """All of it, and how the server is now."""
        return "".join((*self._now(server), *self._resident(server), *self._counted(server)))

    def _now(self, server: TryllServer) -> Iterator[str]:
        health = server.health(0)
        for name, meaning, value in (
            ("uptime_seconds", "Since the server began.", health.uptime_ms / 1000),
            ("sessions", "Clients that are connected.", health.sessions),
            ("agents", "Agents of all clients.", health.agents),
            ("turns_running", "Turns in progress.", health.turns_running),
            ("turns_waiting", "Turns in progress that have said nothing yet.", health.turns_waiting),
            ("models_loaded", "Models that are loaded.", health.models_loaded),
            ("memory_bytes", "What this process has in the memory of the machine.", memory.resident()),
        ):
            yield metric(f"tryll_{name}", "gauge", meaning, [({}, value)])

    def _resident(self, server: TryllServer) -> Iterator[str]:
        there = server.host.models.resident()
        yield metric(
            "tryll_model_memory_bytes", "gauge", "What a loaded model takes: measured, or estimated by its files.",
            [({"model": each.name, "source": "measured" if each.measured else "estimated"}, each.memory_bytes)
             for each in there],
        )  # fmt: skip
        yield metric(
            "tryll_queue_length", "gauge", "Requests that wait for a loaded model.",
            [({"model": each.name}, each.waiting) for each in there],
        )  # fmt: skip

    def _counted(self, server: TryllServer) -> Iterator[str]:
        yield metric("tryll_connections_total", "counter", "Clients that have connected.", [({}, server.accepted)])
        yield metric("tryll_connections_refused_total", "counter", "Clients that were not let in.",
                     [({"reason": reason}, count) for reason, count in self.refused.items()])  # fmt: skip
        yield metric("tryll_requests_limited_total", "counter", "Requests that a limit of their connection refused.",
                     [({"limit": limit}, count) for limit, count in self.limited.items()])  # fmt: skip
        yield metric("tryll_turns_total", "counter", "Turns that have ended.",
                     [({"model": model, "outcome": outcome}, count)
                      for (model, outcome), count in self._turns.items()])  # fmt: skip
        yield metric("tryll_tokens_total", "counter", "Tokens of turns that have ended.",
                     [({"model": model, "kind": kind}, count)
                      for (model, kind), count in self._tokens.items()])  # fmt: skip
        yield metric("tryll_tokens_per_second", "gauge", "Of the last answer, after its first word.",
                     [({"model": model}, speed) for model, speed in self._speed.items()])  # fmt: skip
        for name, meaning, found in (
            ("first_word_seconds", "From the message to the first word of the answer.", self._first),
            ("turn_seconds", "From the message to the end of the turn.", self._whole),
            ("queue_wait_seconds", "How long turns have waited for a model.", self._waited),
        ):
            yield histogram(f"tryll_{name}", meaning, _labelled(found.items()))


def _labelled(found: Iterable[tuple[str, Histogram]]) -> list[tuple[dict[str, str], Histogram]]:
    return [({"model": model}, each) for model, each in found]


def _add(found: dict[str, Histogram], model: str, seconds: float) -> None:
    if model not in found:
        found[model] = Histogram(BOUNDS)
    found[model].add(seconds)
