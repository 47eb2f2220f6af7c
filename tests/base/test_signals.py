"""Which signals may be handled."""

from __future__ import annotations

import signal

from trunkline.base.signals import ENDING, handled


def test_a_signal_that_is_ignored_stays_so() -> None:
    assert handled() == ENDING
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert handled() == (signal.SIGTERM, signal.SIGINT)
        assert handled((signal.SIGHUP,)) == ()
    finally:
        signal.signal(signal.SIGHUP, before)
