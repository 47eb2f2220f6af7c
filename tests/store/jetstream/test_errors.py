from __future__ import annotations

import asyncio

import pytest

from trunkline.store.jetstream.errors import StreamGone, translated


async def _waits_for(future: asyncio.Future[None]) -> None:
    with translated():
        await future


async def test_what_the_library_gives_up_by_itself_can_be_tried_again() -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    waiting = asyncio.create_task(_waits_for(future))
    await asyncio.sleep(0)
    future.cancel()
    with pytest.raises(StreamGone):
        await waiting


async def test_a_task_that_is_cancelled_stays_so() -> None:
    waiting = asyncio.create_task(_waits_for(asyncio.get_running_loop().create_future()))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})
    assert waiting.cancelled()
