"""Which signals may be handled, and that a wait hears of them."""

from __future__ import annotations

import select
import signal
import threading

from trunkline.base.signals import ENDING, handled, waking


def test_a_signal_that_is_ignored_stays_so() -> None:
    assert handled() == ENDING
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert handled() == (signal.SIGTERM, signal.SIGINT)
        assert handled((signal.SIGHUP,)) == ()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_signal_that_another_thread_got_ends_the_wait() -> None:
    heard: list[int] = []
    usual = _wakeup_fd()
    before = signal.signal(signal.SIGUSR1, lambda number, _: heard.append(number))
    try:
        with waking() as reader:
            # The system hands a signal to any thread that does not block it. Only the main thread runs handlers.
            thread = threading.Thread(target=lambda: signal.pthread_kill(threading.get_ident(), signal.SIGUSR1))
            thread.start()
            assert select.select([reader], [], [], 10)[0] == [reader]
            thread.join()
        assert heard == [signal.SIGUSR1]
        assert _wakeup_fd() == usual
    finally:
        signal.signal(signal.SIGUSR1, before)


def _wakeup_fd() -> int:
    fd = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(fd)
    return fd
