"""Do something at a time, whatever the thread that asked for it is stuck in. One thread serves the whole process.

A limit that is not reached, which is the rule, costs two microseconds and no thread of its own.
"""

from __future__ import annotations

import heapq
import itertools
import os
import threading
import time
from collections.abc import Callable

#: Cancelled deadlines wait for their time, which may be hours away. They are thrown out when there are this many, and
#: more of them than of the others.
_MOST_CANCELLED = 64


class Deadline:
    """Something that is to be done at a time, unless it is cancelled before."""

    __slots__ = ("_keeper", "act")

    def __init__(self, act: Callable[[], None], keeper: Deadlines) -> None:
        self.act: Callable[[], None] | None = act
        self._keeper = keeper

    def cancel(self) -> None:
        """It need not be done any more. It may be about to be; may be called again."""
        if self.act is not None:
            self.act = None
            self._keeper._idle += 1


class Deadlines:
    """Keeps deadlines by the monotonic clock. What is to be done must be quick, and must not raise."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._heap: list[tuple[float, int, Deadline]] = []
        self._numbers = itertools.count()
        self._idle = 0
        self._thread: threading.Thread | None = None

    def at(self, when: float, act: Callable[[], None]) -> Deadline:
        """Do something at that time, in the keeper's own thread."""
        deadline = Deadline(act, self)
        with self._changed:
            if self._idle > _MOST_CANCELLED and self._idle * 2 > len(self._heap):
                self._tidy()
            heapq.heappush(self._heap, (when, next(self._numbers), deadline))
            if self._thread is None:
                thread = threading.Thread(target=self._keep, name="deadlines", daemon=True)
                try:
                    thread.start()
                except BaseException:
                    # Nobody would keep it: who asked must hear so, and the next one tries again.
                    deadline.cancel()
                    raise
                self._thread = thread
            elif self._heap[0][2] is deadline:
                self._changed.notify()
        return deadline

    def _tidy(self) -> None:
        """Throw out what was cancelled. Its number is only about right, since nobody locks to cancel."""
        self._idle = 0
        self._heap = [entry for entry in self._heap if entry[2].act is not None]
        heapq.heapify(self._heap)

    def _keep(self) -> None:
        while True:
            for act in self._due():
                try:
                    act()
                except Exception:
                    # It breaks its promise, and must not take the limits of all others with it.
                    import logging

                    logging.getLogger(__name__).exception("A deadline could not be acted upon.")

    def _due(self) -> list[Callable[[], None]]:
        """Wait for the next one, and take all whose time has come."""
        found = []
        with self._changed:
            patience = self._heap[0][0] - time.monotonic() if self._heap else None
            if patience is None or patience > 0:
                self._changed.wait(patience)
            while self._heap and self._heap[0][0] <= time.monotonic():
                deadline = heapq.heappop(self._heap)[2]
                act, deadline.act = deadline.act, None
                if act is None:
                    self._idle -= 1
                else:
                    found.append(act)
        return found


deadlines = Deadlines()
# A forked child has no thread but the one that forked.
os.register_at_fork(after_in_child=deadlines._begin)
