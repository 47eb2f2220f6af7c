"""What is loaded once for all, and stays for a while."""

from __future__ import annotations

import asyncio

import pytest

from trunkline.models.kept import Kept


class Thing:
    def __init__(self) -> None:
        self.closed = asyncio.Event()

    async def close(self) -> None:
        self.closed.set()


class Loader:
    def __init__(self, *problems: Exception) -> None:
        self.loads = 0
        self.problems = list(problems)
        self.ready = asyncio.Event()
        self.ready.set()

    async def __call__(self) -> Thing:
        self.loads += 1
        await self.ready.wait()
        if self.problems:
            raise self.problems.pop()
        return Thing()


async def test_all_who_use_it_have_the_same_one_and_it_stays_for_the_next() -> None:
    kept, load = Kept[Thing](), Loader()
    async with kept.use("a", load) as one, kept.use("a", load) as other:
        assert one is other
    async with kept.use("a", load) as later:
        assert later is one
    assert load.loads == 1
    await kept.close()
    assert one.closed.is_set()


async def test_it_goes_when_nobody_has_used_it_for_a_while() -> None:
    kept, load = Kept[Thing](0.0), Loader()
    async with kept.use("a", load) as thing:
        assert not thing.closed.is_set()
    await thing.closed.wait()
    async with kept.use("a", load) as another:
        assert another is not thing
    await kept.close()


async def test_one_that_cannot_be_loaded_is_tried_again() -> None:
    kept, load = Kept[Thing](), Loader(OSError("no"))
    with pytest.raises(OSError, match="no"):
        await kept.take("a", load)
    await kept.take("a", load)
    assert load.loads == 2
    await kept.close()


async def test_who_leaves_while_it_is_loaded_leaves_it_to_the_others() -> None:
    kept, load = Kept[Thing](), Loader()
    load.ready.clear()
    first = asyncio.ensure_future(kept.take("a", load))
    second = asyncio.ensure_future(kept.take("a", load))
    await asyncio.sleep(0)
    first.cancel()
    load.ready.set()
    assert isinstance(await second, Thing)
    assert load.loads == 1
    await kept.close()
