"""Which signals are ours to handle, and how to hear of them while waiting for something else.

What we were started to ignore (`nohup`, a job in the background) stays ignored.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

#: What asks a process to end.
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def handled(numbers: Iterable[signal.Signals] = ENDING) -> tuple[signal.Signals, ...]:
    """Those of the signals that are not ignored: only for them a handler may be installed."""
    return tuple(number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN)


_swallowed: list[int] = []


def exit_on_signals() -> None:
    """End this process with 128 + the number of a signal, from anywhere in its start. For the main thread."""

    def end(number: int, _: object) -> None:
        _swallowed.append(number)
        sys.exit(128 + number)

    for number in handled():
        signal.signal(number, end)


def missed() -> int | None:
    """The signal that should have ended this process and did not.

    Handlers run between any two steps, also within a callback whose exceptions nobody hears of, as imports have them.
    Whoever takes the signals over from `exit_on_signals` looks here once.
    """
    return _swallowed[0] if _swallowed else None


@contextmanager
def waking() -> Iterator[int]:
    """A descriptor that can be read from after each signal that has a handler. For the main thread.

    Handlers run there, between two steps of the interpreter. A wait without an end is no such place: a signal that
    arrives just before it, or that the system hands to another thread, is not heard of. So wait for this one, too.
    """
    # Not at the top: nearly every command imports this module, and few wait without an event loop.
    from trunkline.base.process_guard import make_pipe

    reader, writer = make_pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    try:
        yield reader
    finally:
        signal.set_wakeup_fd(before)
        os.close(reader)
        os.close(writer)
