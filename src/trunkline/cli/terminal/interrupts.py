"""Ctrl-C while a turn runs: asks the turn to stop. Pressed again and again, it gets through to a program that hangs."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

#: So often, without the event loop taking notice, means that it cannot.
INSISTED = 3
EXIT_INTERRUPTED = 130


@contextmanager
def interrupts(on_interrupt: Callable[[], None], on_insisted: Callable[[], None]) -> Iterator[None]:
    """Inside, SIGINT calls `on_interrupt` from the event loop.

    If the loop is stuck, in an agent that never lets go of it, the third time ends the process; `on_insisted` then puts
    the terminal in order.
    """
    loop = asyncio.get_running_loop()
    unheard = 0

    def heard() -> None:
        nonlocal unheard
        unheard = 0
        on_interrupt()

    # Not `loop.add_signal_handler`, which is of no use while the loop does not turn.
    def handler(number: int, frame: FrameType | None) -> None:
        nonlocal unheard
        unheard += 1
        if unheard >= INSISTED:
            on_insisted()
            os._exit(EXIT_INTERRUPTED)
        loop.call_soon_threadsafe(heard)

    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
