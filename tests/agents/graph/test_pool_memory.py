"""What loaded models take."""

from __future__ import annotations

import asyncio

import pytest

from trunkline.agents.graph.pool_memory import MemoryMeter, ModelMemory


class Process:
    """Grows as it is told."""

    def __init__(self, size: int = 1000) -> None:
        self.size = size
        self.found: list[ModelMemory] = []
        self.meter = MemoryMeter(lambda: self.size)

    async def load(self, grows: int, files: int, until: asyncio.Event | None = None) -> str:
        async def work() -> str:
            if until is not None:
                await until.wait()
            self.size += grows
            return "model"

        return await self.meter.watch(work(), files, self.found.append)


async def test_a_model_takes_what_the_process_has_grown_by() -> None:
    process = Process()
    assert await process.load(700, 500) == "model"
    assert process.found == [ModelMemory(700, True)]


async def test_one_that_has_not_read_its_files_or_keeps_them_elsewhere_takes_their_size() -> None:
    process = Process()
    await process.load(499, 500)
    assert process.found == [ModelMemory(500, False)]


async def test_of_two_that_are_loaded_at_once_nobody_can_tell_which_took_what() -> None:
    process, go = Process(), asyncio.Event()
    both = [asyncio.ensure_future(process.load(900, 500, go)), asyncio.ensure_future(process.load(900, 400, go))]
    await asyncio.sleep(0)
    go.set()
    await asyncio.gather(*both)
    assert process.found == [ModelMemory(500, False), ModelMemory(400, False)]
    await process.load(700, 500)
    assert process.found[-1] == ModelMemory(700, True)


async def test_where_nobody_tells_it_is_the_size_of_the_files() -> None:
    process = Process(0)
    await process.load(0, 500)
    assert process.found == [ModelMemory(500, False)]


async def test_one_that_cannot_be_loaded_takes_nothing_and_disturbs_no_other() -> None:
    process = Process()

    async def failing() -> str:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await process.meter.watch(failing(), 500, process.found.append)
    await process.load(700, 500)
    assert process.found == [ModelMemory(700, True)]
