"""Writes that wait for their turn at a file."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from trunkline.agents.graph.file_queues import FileQueues


async def test_one_file_is_written_by_one_at_a_time_in_order_and_nothing_is_kept_of_it() -> None:
    queues, let_go, begun = FileQueues(2, "write"), threading.Event(), list[int]()

    def write(number: int) -> int:
        begun.append(number)
        assert let_go.wait(PATIENCE_SECONDS)
        return number

    tasks = [asyncio.create_task(queues.run("/a", lambda number=number: write(number))) for number in range(4)]  # type: ignore[misc]
    try:
        await until(lambda: begun)
        # One that has begun, and one that has not.
        tasks[0].cancel()
        tasks[2].cancel()
        assert await queues.run("/b", lambda: "beside it") == "beside it"
        assert begun == [0]
    finally:
        let_go.set()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(each) for each in found] == [asyncio.CancelledError, int, asyncio.CancelledError, int]
    assert begun == [0, 1, 3]
    await until(lambda: not queues._waiting)


async def test_a_write_that_fails_says_so_and_holds_up_nobody() -> None:
    queues = FileQueues(1, "write")

    def fails() -> None:
        raise OSError("no luck")

    failing = asyncio.create_task(queues.run("/a", fails))
    assert list(await asyncio.gather(queues.run("/a", lambda: 1), queues.run("/b", lambda: 2))) == [1, 2]
    with pytest.raises(OSError, match="no luck"):
        await failing
