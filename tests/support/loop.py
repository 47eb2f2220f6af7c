"""An event loop whose clock jumps to the next timer instead of waiting for it.

A test that takes minutes by the clock of the code takes none by ours, and one that would hang fails at once: when
nothing is scheduled and no descriptor is watched, nothing can ever happen again.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

from tests.support.patience import PATIENCE_SECONDS

T = TypeVar("T")


class Deadlock(AssertionError):
    """The loop waits, and nothing will ever wake it."""


class _JumpingSelector(selectors.DefaultSelector):
    """Never waits for time to pass."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            # Only a thread can wake the loop now: one that looks up an address, or an executor that ends.
            ready = super().select(PATIENCE_SECONDS)
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


#: Passes of the loop in which anything happens that needs neither a clock nor anybody else.
_OWN_PASSES = 10_000
#: What others, threads and processes, get of the processor between two passes after that.
_OTHERS_SECONDS = 0.001


async def until(condition: Callable[[], object]) -> None:
    """Let the loop go round until something holds; fails the test if it never does. No virtual time passes by it."""
    passes, deadline = 0, time.monotonic() + PATIENCE_SECONDS
    while not condition():
        passes += 1
        if passes > _OWN_PASSES:
            assert time.monotonic() < deadline, "it never came about"
            time.sleep(_OTHERS_SECONDS)  # noqa: ASYNC251 - of the loop it would be virtual time
        await asyncio.sleep(0)


#: More than anything takes that waits for nobody.
_FEW_PASSES = 20


async def at_once(future: asyncio.Future[Any]) -> bool:
    """Whether something is over after a few passes of the loop: it waits for no thread, process or timer."""
    for _ in range(_FEW_PASSES):
        await asyncio.sleep(0)
    return future.done()


def hold_limits(patch: pytest.MonkeyPatch, seconds: float) -> Callable[[], None]:
    """Let each `asyncio.timeout` of so many seconds last for the patience of a test, and give what ends the latest.

    So a limit comes when what it is about has begun, however long a busy machine takes for that.
    """
    timeout, limits = asyncio.timeout, list[asyncio.Timeout]()

    def held(delay: float | None) -> asyncio.Timeout:
        if delay != seconds:
            return timeout(delay)
        limits.append(timeout(PATIENCE_SECONDS))
        return limits[-1]

    patch.setattr(asyncio, "timeout", held)
    return lambda: limits[-1].reschedule(asyncio.get_running_loop().time())
