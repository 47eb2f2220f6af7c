"""Which signals are ours to handle: what we were started to ignore (`nohup`, a job in the background) stays ignored."""

from __future__ import annotations

import signal
from collections.abc import Iterable

#: What asks a process to end.
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def handled(numbers: Iterable[signal.Signals] = ENDING) -> tuple[signal.Signals, ...]:
    """Those of the signals that are not ignored: only for them a handler may be installed."""
    return tuple(number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN)
