"""The database's clock, known here without asking: machines that share agents need not agree on the time."""

from __future__ import annotations

import time


def ticks() -> float:
    """Seconds that pass on this machine, those included in which it or this process was stopped."""
    # The usual clock stands still while a machine sleeps.
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class DatabaseClock:
    """What time it is there, as of the last answer and by what has passed here since."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def heard(self, milliseconds: int, asked: float) -> None:
        """The database said what time it was, after it was asked at that tick."""
        self._ahead = milliseconds / 1000 - asked

    def milliseconds(self) -> int:
        """The time there, in milliseconds since 1970."""
        return int((self._ahead + ticks()) * 1000)
