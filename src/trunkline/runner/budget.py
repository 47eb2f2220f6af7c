"""How many cycles an agent may run in a day. Days begin at midnight UTC.

The count is kept in memory: it goes on when the agent is stopped and started again, and begins anew with the process.
Launchers that share an agent count together.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from trunkline.core.faults import ConfigError
from trunkline.runner.config_parts import at

_DAY_SECONDS = 24 * 60 * 60


class Budget:
    """The cycles of one agent, counted by day."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._day = 0
        self._spent = 0

    @property
    def spent(self) -> int:
        """Cycles of today."""
        return self._spent if self._day == self._today() else 0

    def spend(self) -> None:
        """A cycle begins."""
        self._spent = self.spent + 1
        self._day = self._today()

    def count(self, spent: int) -> None:
        """So many are known to have begun today, wherever."""
        self._spent = max(self.spent, spent)
        self._day = self._today()

    def wait(self, most: int | None) -> float:
        """Seconds until the next one may begin, if there may be that many in a day."""
        if most is None or self.spent < most:
            return 0.0
        return (self._today() + 1) * _DAY_SECONDS - self._clock()

    def _today(self) -> int:
        return int(self._clock() // _DAY_SECONDS)


def daily_limit(found: Mapping[str, Any]) -> int | None:
    """`runtime.maxCyclesPerDay` of a configuration; None: as many as there are.

    Raises:
        ConfigError: it is not a number of cycles.
    """
    limit = at(found, "runtime", "maxCyclesPerDay")
    if limit is None:
        return None
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not math.isfinite(limit) or limit < 1:
        raise ConfigError("`runtime.maxCyclesPerDay` must be a number of cycles, at least 1.")
    return int(limit)
