"""Waiting for a session that another process holds. No real time."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from trunkline.core.faults import SessionHeld
from trunkline.store import locks
from trunkline.store.files import FileStore
from trunkline.store.waiting import ENDING_SECONDS, HELD_SECONDS, LOOK_SECONDS, until_free, when_free


class Held:
    """A session that becomes free at some moment; and the clock."""

    def __init__(self, free_at: float, *, ending_at: float = float("inf"), above: bool = False) -> None:
        self.now = 0.0
        self._free_at = free_at
        self._ending_at = ending_at
        self._above = above

    def take(self) -> str:
        if self.now >= self._free_at:
            return "the session"
        held = SessionHeld("held")
        held.ending = self.now >= self._ending_at
        held.above = self._above
        raise held

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def wait(self, seconds: float = HELD_SECONDS) -> str:
        return when_free(self.take, seconds, clock=lambda: self.now, sleep=self.sleep)


def test_what_is_free_is_had_at_once() -> None:
    held = Held(0.0)
    assert held.wait() == "the session"
    assert held.now == 0.0


def test_what_is_let_go_of_in_time_is_had() -> None:
    held = Held(4.9)
    assert held.wait() == "the session"
    assert held.now < 4.9 + 2 * LOOK_SECONDS


def test_what_is_held_for_longer_is_refused_after_five_seconds() -> None:
    held = Held(1000.0)
    with pytest.raises(SessionHeld):
        held.wait()
    assert held.now == pytest.approx(5.0, abs=2 * LOOK_SECONDS)


def test_one_that_is_known_to_be_ending_is_waited_for_longer_but_not_for_ever() -> None:
    assert Held(12.0, ending_at=4.0).wait() == "the session"
    held = Held(1000.0, ending_at=0.0)
    with pytest.raises(SessionHeld):
        held.wait()
    assert held.now == pytest.approx(ENDING_SECONDS, abs=2 * LOOK_SECONDS)


def test_nobody_waits_for_the_process_that_started_it() -> None:
    held = Held(1.0, above=True)
    with pytest.raises(SessionHeld):
        held.wait()
    assert held.now == 0.0


@pytest.mark.virtual_time
async def test_the_event_loop_goes_on_meanwhile_and_it_is_said_once_what_is_waited_for() -> None:
    loop = asyncio.get_running_loop()
    held, told, ticks = Held(12.0, ending_at=0.0), list[str](), list[float]()

    def take() -> str:
        held.now = loop.time() - begun
        return held.take()

    async def tick() -> None:
        while True:
            await asyncio.sleep(1)
            ticks.append(loop.time())

    begun = loop.time()
    ticking = asyncio.create_task(tick())
    assert await until_free(take, 0.0, tell=told.append) == "the session"
    ticking.cancel()
    assert len(ticks) >= 10
    assert told == ["held Waiting for it to be released."]
    begun, held = loop.time(), Held(1.0)
    with pytest.raises(SessionHeld):
        await until_free(take, 0.0, tell=told.append)
    assert (loop.time(), len(told)) == (begun, 1)


def test_a_person_waits_only_for_one_that_is_ending() -> None:
    with pytest.raises(SessionHeld):
        Held(1.0).wait(0.0)
    assert Held(1.0, ending_at=0.0).wait(0.0) == "the session"


@pytest.mark.skipif(not locks._OFD, reason="the kernel has no such locks")
def test_a_holder_says_that_it_is_ending(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    log = store.create("s", "/w")
    for ending in (False, True):
        with pytest.raises(SessionHeld) as held:
            store.open("s")
        assert held.value.ending is ending
        log.ending()
        log.ending()
    # A duplicate that is closed, as after a sync, takes nothing back.
    os.close(os.dup(log._fd))
    with pytest.raises(SessionHeld) as held:
        store.create("s", "/w")
    assert held.value.ending
    log.close()
    log.ending()
    again = store.open("s")
    with pytest.raises(SessionHeld) as held:
        store.open("s")
    assert not held.value.ending
    again.close()


def test_this_process_is_among_its_own_ancestors(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    log = store.create("s", "/w")
    with pytest.raises(SessionHeld) as held:
        store.open("s")
    assert held.value.above is (locks.holder(log._fd) is not None)
    assert {os.getpid(), os.getppid()} <= locks._ancestry() | {1}
    log.close()
