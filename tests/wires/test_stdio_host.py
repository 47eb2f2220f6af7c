"""A host that is not read for a while."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support import loop
from trunkline.wires.stdio_host import StdioHost

#: Passes of the loop in which a wait that is over is noticed, and a few more.
PASSES = 8


@contextmanager
def pipes() -> Iterator[tuple[tuple[int, int], int]]:
    """Our ends of a host's pipes, and the one that it writes to."""
    reading, to_us = os.pipe()
    from_us, writing = os.pipe()
    try:
        yield (reading, writing), to_us
    finally:
        for fd in (reading, to_us, from_us, writing):
            os.close(fd)


class Room:
    """There is none until it is made."""

    def __init__(self) -> None:
        self.is_wanted = False
        self.made = asyncio.Event()

    async def wait(self) -> None:
        self.is_wanted = True
        await self.made.wait()


async def test_a_wait_for_room_that_is_cancelled_while_there_is_room_again_ends_as_cancelled() -> None:
    for passes in range(PASSES):
        with pipes() as (ours, to_us):
            host, room = StdioHost(ours), Room()
            host.flooded_when(lambda: True, room.wait)
            serving = asyncio.create_task(host.serve(lambda data: None, lambda: None))
            os.write(to_us, b"a flood")
            await _until_wanted(room)
            (waiting,) = (task for task in asyncio.all_tasks() if task.get_name() == "wait for the host to read")
            room.made.set()
            for _ in range(passes):
                await asyncio.sleep(0)
            was_waiting = waiting.cancel()
            await asyncio.wait({waiting})
            assert waiting.cancelled() is was_waiting, passes
            host.finish(0)
            assert await serving == 0
            await host.close()


async def _until_wanted(room: Room) -> None:
    await loop.until(lambda: room.is_wanted)
