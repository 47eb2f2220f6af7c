"""How often an agent may write: a bucket of tokens for each, filled steadily."""

from __future__ import annotations

import time
from collections.abc import Callable

from trunkline.network.refusal import Refused

#: Buckets that are full again say nothing: they are forgotten when there are more than this many.
MAX_BUCKETS = 10_000


class Rates:
    """One limit for all agents, counted for each by itself. May be asked from several threads at once."""

    def __init__(self, per_minute: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def spend(self, agent_id: str) -> None:
        """Count one write.

        Raises:
            Refused: 429, with `Retry-After`.
        """
        if self._per_minute is None:
            return
        rate, now = self._per_minute / 60, self._clock()
        tokens, at = self._buckets.get(agent_id, (float(self._per_minute), now))
        tokens = min(float(self._per_minute), tokens + (now - at) * rate)
        if tokens < 1:
            seconds = max(1, -int(-(1 - tokens) // rate))
            raise Refused(429, f"Too many writes: try again in {seconds} s", {"Retry-After": str(seconds)})
        if len(self._buckets) >= MAX_BUCKETS and agent_id not in self._buckets:
            self._forget_full(rate, now)
        self._buckets[agent_id] = (tokens - 1, now)

    def _forget_full(self, rate: float, now: float) -> None:
        full = float(self._per_minute or 0)
        self._buckets = {
            agent: (tokens, at) for agent, (tokens, at) in self._buckets.items() if tokens + (now - at) * rate < full
        }
