"""How often a client may do something in a minute."""

from __future__ import annotations

from collections import deque

SECONDS = 60.0


class TurnPace:
    """At most so many times within any minute."""

    __slots__ = ("_most", "_times")

    def __init__(self, most: int) -> None:
        self._most = most
        self._times: deque[float] = deque()

    def wait(self, now: float) -> float:
        """How long until the next time; 0: that is now, and counts."""
        times = self._times
        while times and now - times[0] >= SECONDS:
            times.popleft()
        if len(times) >= self._most:
            return times[0] + SECONDS - now
        times.append(now)
        return 0.0
