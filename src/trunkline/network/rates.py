"""How often an agent may write: so many times in any minute, and not once more."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable

from trunkline.base.asgi_answers import Refused

#: The minute.
SECONDS = 60.0
#: The status of an answer to who writes too often.
TOO_OFTEN = 429


class Rates:
    """One limit for all agents, counted for each by itself. May be asked from several threads at once.

    It remembers the writes of the last minute and no others, of whomever.
    """

    def __init__(self, per_minute: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._lock = threading.Lock()
        self._writers: deque[str] = deque()
        """Who wrote, in the order of the writes."""
        self._moments: dict[str, deque[float]] = {}
        """When each of them did."""

    def __len__(self) -> int:
        """How many writes it remembers."""
        return len(self._writers)

    def spend(self, agent_id: str) -> None:
        """Count one write.

        Raises:
            Refused: 429, with `Retry-After`.
        """
        if self._per_minute is None:
            return
        with self._lock:
            now = self._clock()
            self._forget(now - SECONDS)
            moments = self._moments.setdefault(agent_id, deque())
            if len(moments) >= self._per_minute:
                seconds = max(1, math.ceil(moments[0] + SECONDS - now))
                raise Refused(TOO_OFTEN, f"Too many writes: try again in {seconds} s", {"Retry-After": str(seconds)})
            moments.append(now)
            self._writers.append(agent_id)

    def _forget(self, moment: float) -> None:
        """Forget what was written up to a moment."""
        while self._writers and self._moments[self._writers[0]][0] <= moment:
            agent_id = self._writers.popleft()
            moments = self._moments[agent_id]
            moments.popleft()
            if not moments:
                del self._moments[agent_id]
