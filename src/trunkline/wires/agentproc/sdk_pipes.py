"""The pipes of an agent process, blocking, and what ends it: for `sdk`, which must not cost an event loop.

A signal, or a bridge that is gone, is a `SystemExit`. It passes through `except Exception`, so that a handler can put
its things in order, which it does in bounded time; and a thread of the handler's own that meets it ends without a word.
"""

from __future__ import annotations

import os
import signal
import sys
from _thread import allocate_lock
from collections.abc import Callable
from types import FrameType

from trunkline.base.signals import handled
from trunkline.base.writing import EXIT_BROKEN_PIPE, written
from trunkline.core.faults import RemoteProtocolError
from trunkline.wires.agentproc import serve_input

#: How long a handler may put its things in order after a signal. Bridges wait five seconds before they kill.
ORDER_SECONDS = 1.0


class PipeOutput:
    """Writes at once, whole lines, and waits for the bridge to read them."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = allocate_lock()
        self._torn = False
        """Whether a signal has cut off the last line."""

    def __call__(self, data: bytes) -> None:
        """Write all of it.

        Raises:
            SystemExit: nobody reads us.
        """
        with self._lock:
            try:
                for left in written(self._fd, b"\n" + data if self._torn else data):
                    self._torn = left > 0
            except BrokenPipeError:
                raise SystemExit(EXIT_BROKEN_PIPE) from None


class Input:
    """Standard input, of which nothing is read before somebody asks."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._rest = b""

    def line(self) -> bytes:
        """The next line that is not blank.

        Raises:
            RemoteProtocolError: no more can be had.
        """
        try:
            line, self._rest = serve_input.first_line(self._fd, self._rest)
        except OSError as error:
            raise RemoteProtocolError(f"Standard input cannot be read: {error.strerror}.") from None
        return line

    def everything(self) -> bytes | None:
        """All of it; `None` if nothing comes.

        Raises:
            RemoteProtocolError: it is too long.
        """
        return serve_input.whole_input(self._fd)


class Signals:
    """What becomes of signals. The first raises `SystemExit`, or does what `end` says; the second is the end.

    Python hears of a signal between two instructions: one that comes right before a system call that waits is heard
    when that is over. So a handler that waits for long should do it in pieces; a bridge that is not heard kills.
    """

    def __init__(self) -> None:
        self.end: Callable[[int], None] = _leave
        self._numbers = handled()
        for number in self._numbers:
            signal.signal(number, self._caught)

    def _caught(self, number: int, frame: FrameType | None) -> None:
        for each in self._numbers:
            signal.signal(each, lambda number, _: os._exit(128 + number))
        _give_up_later(128 + number)
        self.end(128 + number)


def _leave(code: int) -> None:
    raise SystemExit(code)


def _give_up_later(code: int) -> None:
    """Exit after `ORDER_SECONDS`, whatever still goes on by then."""
    from threading import Timer

    timer = Timer(ORDER_SECONDS, os._exit, (code,))
    timer.daemon = True
    timer.start()


def flush_prints() -> None:
    """Write what was printed so far. Where that is not possible, it is forgotten.

    Python would try again at its end, complain, and exit with a code of its own.
    """
    for stream, fd in ((sys.stdout, 1), (sys.stderr, 2)):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, fd)
            os.close(null)
