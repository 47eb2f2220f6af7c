"""Whether a request that failed is made again, and when. No clock in here and no waiting: times go in and come out."""

from __future__ import annotations

import os
from collections.abc import Callable

#: The first wait, doubled each time up to the longest; half of each is left to chance, so that many agents that were
#: refused at once do not come back at once.
FIRST_SECONDS = 0.5
LONGEST_SECONDS = 8.0

#: After this long somebody should be told, unless the provider itself asked for more time.
GIVE_UP_SECONDS = 30.0

#: The most that a provider can make us wait, in all. Beyond, the person who waits decides.
MAX_ASKED_SECONDS = 300.0

#: Requests in all. A provider that always says "in a second" is not asked forever.
MAX_TRIES = 8


def _chance() -> float:
    # Not `random`: its import costs milliseconds, and this is a handful of numbers.
    return os.urandom(1)[0] / 255


class RequestBackoff:
    """For one question to a provider, from its first try to its last.

    Args:
        give_up: seconds, unless more is asked for.
        tries: requests in all.
    """

    def __init__(
        self,
        now: float,
        chance: Callable[[], float] = _chance,
        *,
        give_up: float = GIVE_UP_SECONDS,
        tries: int = MAX_TRIES,
    ) -> None:
        self._deadline = now + give_up
        self._most = tries
        self._chance = chance
        self._tries = 0
        self._asked = 0.0

    def wait(self, now: float, asked: float | None = None) -> float | None:
        """A try has failed. Seconds until the next; None when there should be none.

        Args:
            asked: seconds that the provider asked for.
        """
        self._tries += 1
        if self._tries >= self._most:
            return None
        if asked:
            self._asked += asked
            self._deadline += asked
            return asked if self._asked <= MAX_ASKED_SECONDS else None
        longest = min(LONGEST_SECONDS, FIRST_SECONDS * 2 ** (self._tries - 1))
        seconds = longest * (1 + self._chance()) / 2
        return seconds if now + seconds < self._deadline else None

    def left(self, now: float) -> float:
        """Seconds until it is too late for one more wait."""
        return self._deadline - now
