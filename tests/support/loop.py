"""An event loop whose clock jumps to the next timer instead of waiting for it.

A test that takes minutes by the clock of the code takes none by ours, and one that would hang fails at once: when
nothing is scheduled and no descriptor is watched, nothing can ever happen again.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


#: Longer than a thread needs to end on a busy machine. Only a test that hangs waits for so long.
_THREAD_SECONDS = 10.0


class Deadlock(AssertionError):
    """The loop waits, and nothing will ever wake it."""


class _JumpingSelector(selectors.DefaultSelector):
    """Never waits for time to pass."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            # Only a thread can wake the loop now: one that looks up an address, or an executor that ends.
            ready = super().select(_THREAD_SECONDS)
            if not ready:
                raise Deadlock("nothing is left to happen")
        if not ready and timeout:
            self.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop on virtual time, which starts at 0."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a test's coroutine on virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


#: Passes of the loop in which anything that needs no clock happens.
MOST_PASSES = 100_000


async def until(condition: Callable[[], object]) -> None:
    """Let the loop go round until something holds; fails the test if it never does."""
    for _ in range(MOST_PASSES):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came about")
