"""What is to be done at a time is done then, unless it is cancelled."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.base.deadlines import Deadlines


@contextmanager
def held(keeper: Deadlines) -> Iterator[None]:
    """Nothing is done within, whatever the time is."""
    gate, waits = threading.Event(), threading.Event()

    def hold() -> None:
        waits.set()
        gate.wait()

    keeper.at(time.monotonic(), hold)
    assert waits.wait(PATIENCE_SECONDS)
    try:
        yield
    finally:
        gate.set()


def test_it_is_done_at_its_time_in_order() -> None:
    keeper, done, order = Deadlines(), threading.Event(), []
    now = time.monotonic()

    def last() -> None:
        order.append("late")
        done.set()

    with held(keeper):
        keeper.at(now + 0.1, last)
        keeper.at(now + 0.05, lambda: order.append("early"))
    assert done.wait(PATIENCE_SECONDS)
    assert order == ["early", "late"]
    assert time.monotonic() >= now + 0.1


def test_what_is_cancelled_is_not_done() -> None:
    keeper, done, order = Deadlines(), threading.Event(), []
    now = time.monotonic()
    with held(keeper):
        never = keeper.at(now + 0.05, lambda: order.append("never"))
        keeper.at(now + 0.1, done.set)
        never.cancel()
        never.cancel()
    assert done.wait(PATIENCE_SECONDS)
    assert order == []


def test_an_earlier_one_that_comes_later_is_done_first() -> None:
    keeper, done = Deadlines(), threading.Event()
    far = keeper.at(time.monotonic() + 3600, lambda: None)
    keeper.at(time.monotonic() + 0.05, done.set)
    assert done.wait(PATIENCE_SECONDS)
    far.cancel()


def test_cancelled_ones_do_not_pile_up() -> None:
    keeper = Deadlines()
    kept = keeper.at(time.monotonic() + 3600, lambda: None)
    for _ in range(1000):
        keeper.at(time.monotonic() + 3600, lambda: None).cancel()
    assert len(keeper._heap) < 200
    assert any(entry[2] is kept for entry in keeper._heap)


def test_a_forked_child_has_a_keeper_of_its_own() -> None:
    from trunkline.base.deadlines import deadlines

    deadlines.at(time.monotonic() + 3600, lambda: None).cancel()
    pid = os.fork()
    if pid == 0:
        done = threading.Event()
        deadlines.at(time.monotonic() + 0.01, done.set)
        os._exit(0 if done.wait(PATIENCE_SECONDS) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_one_that_fails_does_not_take_the_others_with_it(caplog: pytest.LogCaptureFixture) -> None:
    keeper, done = Deadlines(), threading.Event()
    now = time.monotonic()
    keeper.at(now, lambda: 1 / 0)  # type: ignore[arg-type]  # what it gives does not matter
    keeper.at(now + 0.05, done.set)
    assert done.wait(PATIENCE_SECONDS)
    assert "could not be acted upon" in caplog.text


def test_a_keeper_that_could_not_begin_begins_with_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    keeper, done = Deadlines(), threading.Event()

    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refused)
        with pytest.raises(RuntimeError):
            keeper.at(time.monotonic(), done.set)
    keeper.at(time.monotonic(), done.set)
    assert done.wait(PATIENCE_SECONDS)
