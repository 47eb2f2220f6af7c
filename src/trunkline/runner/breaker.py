"""When to try again: the usual interval while all is well, longer and longer while it is not.

- After a failure the pause doubles, up to a limit, and varies a little, so that many agents do not ask all at once.
- After some failures in a row the breaker is *open*: nothing is tried for a while. Then one cycle is tried
  (*half-open*); if that fails, it is open again.
- Credentials that are refused do not get better by asking: then it is open at once, and for longer.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Literal

from trunkline.base.values import Value

BreakerState = Literal["closed", "open", "half-open"]


class BreakerSettings(Value):
    """How long is waited, in seconds, and how many failures open the breaker."""

    longest: float = 900.0
    """Between two tries, however many failed: a network that comes back is noticed within a quarter of an hour."""
    failures: int = 5
    open_for: float = 120.0
    refused_for: float = 600.0
    """After credentials were refused."""
    spread: float = 0.1
    """The part of a pause by which it varies, either way."""


class Breaker:
    """Counts failures, and says how long to wait."""

    def __init__(
        self, interval: float, patience: BreakerSettings | None = None, chance: Callable[[], float] = random.random
    ) -> None:
        self._interval = interval
        self._patience = patience or BreakerSettings()
        self._chance = chance
        self._refused = False
        self.failures = 0
        """In a row."""
        self.state: BreakerState = "closed"

    def trying(self) -> None:
        """A cycle begins."""
        if self.state == "open":
            self.state = "half-open"

    def succeeded(self) -> None:
        self.failures = 0
        self.state = "closed"
        self._refused = False

    def failed(self, *, refused: bool = False) -> None:
        """A cycle failed; `refused`: because of its credentials."""
        self.failures += 1
        self._refused = refused
        if refused or self.state == "half-open" or self.failures >= self._patience.failures:
            self.state = "open"

    def pause(self) -> float:
        """Seconds until the next try."""
        if self.failures == 0:
            return self._interval
        patience = self._patience
        pause = min(self._interval * 2.0 ** min(self.failures, 30), max(patience.longest, self._interval))
        if self.state == "open":
            pause = max(pause, patience.refused_for if self._refused else patience.open_for)
        return pause * (1 + patience.spread * (2 * self._chance() - 1))
