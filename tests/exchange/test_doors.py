"""Work on sessions that is completed whoever leaves, and says so if it was not."""

from __future__ import annotations

import asyncio

import pytest

from trunkline.core.faults import AgentBusy, StoreUnavailable
from trunkline.exchange.doors import Doors


async def test_work_that_was_cut_off_is_a_fault_and_not_its_callers_own_end() -> None:
    async def cut_off() -> None:
        raise asyncio.CancelledError

    with pytest.raises(StoreUnavailable, match="may have been done"):
        await Doors().whole(cut_off())


async def test_work_goes_on_when_its_caller_leaves_and_nothing_begins_after_the_end() -> None:
    doors, may_end, done = Doors(), asyncio.Event(), asyncio.Event()

    async def work() -> None:
        await may_end.wait()
        done.set()

    caller = asyncio.create_task(doors.whole(work()))
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    may_end.set()
    await doors.close()
    assert done.is_set()
    with pytest.raises(AgentBusy):
        await doors.whole(work())
