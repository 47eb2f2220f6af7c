"""A turn in a task: in order, with back-pressure, and ended in time whatever the work does."""

from __future__ import annotations

import asyncio

import pytest

from trunkline.agents.turn_stream import AHEAD, TurnStream
from trunkline.core.events import Event, TextDelta, TurnEnded
from trunkline.core.usage import Usage

pytestmark = pytest.mark.virtual_time


async def taken(tell: TurnStream) -> list[Event]:
    return [event async for event in tell]


async def test_what_is_said_comes_out_in_order_and_the_end_last() -> None:
    async def work(tell: TurnStream) -> TurnEnded:
        for number in range(100):
            await tell.say(TextDelta(str(number)))
        tell.say_now(TextDelta("!"))
        return TurnEnded("success", Usage(1, 2))

    events = await taken(TurnStream(work))
    assert events == [*(TextDelta(str(n)) for n in range(100)), TextDelta("!"), TurnEnded("success", Usage(1, 2))]


async def test_the_work_does_not_run_far_ahead_of_its_reader() -> None:
    said = 0

    async def work(tell: TurnStream) -> TurnEnded:
        nonlocal said
        while True:
            await tell.say(TextDelta("x"))
            said += 1

    tell = TurnStream(work)
    await anext(tell)
    for _ in range(100):
        await asyncio.sleep(0)
    assert said <= AHEAD + 1
    await tell.aclose()


async def test_a_cancelled_turn_gives_what_was_said_and_then_its_end_with_what_was_used() -> None:
    tidied = asyncio.Event()

    async def work(tell: TurnStream) -> TurnEnded:
        tell.usage = Usage(7, 3)
        await tell.say(TextDelta("a"))
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.1)
            tidied.set()
        raise AssertionError

    tell = TurnStream(work)
    assert await anext(tell) == TextDelta("a")
    waiting = asyncio.ensure_future(anext(tell))
    await asyncio.sleep(0)
    tell.cancel()
    assert await waiting == TurnEnded("cancelled", Usage(7, 3))
    assert tidied.is_set()
    with pytest.raises(StopAsyncIteration):
        await anext(tell)


async def test_work_that_does_not_let_go_ends_in_time_all_the_same() -> None:
    released, begun_to_work = asyncio.Event(), asyncio.Event()

    async def work(tell: TurnStream) -> TurnEnded:
        begun_to_work.set()
        try:
            await asyncio.Event().wait()
        finally:
            await released.wait()
        raise AssertionError

    tell = TurnStream(work)
    waiting = asyncio.ensure_future(anext(tell))
    await begun_to_work.wait()
    begun = asyncio.get_running_loop().time()
    tell.cancel()
    assert await waiting == TurnEnded("cancelled", None)
    assert asyncio.get_running_loop().time() - begun <= 0.6
    assert not await tell.finished(1)
    released.set()
    assert await tell.finished(1)


async def test_one_that_is_cancelled_before_it_began_never_works() -> None:
    async def work(tell: TurnStream) -> TurnEnded:
        raise AssertionError("it works")

    tell = TurnStream(work)
    tell.cancel()
    assert await taken(tell) == [TurnEnded("cancelled", None)]


async def test_what_the_work_raises_is_raised_to_the_reader_after_what_it_said() -> None:
    async def work(tell: TurnStream) -> TurnEnded:
        await tell.say(TextDelta("a"))
        raise ValueError("broken")

    tell = TurnStream(work)
    assert await anext(tell) == TextDelta("a")
    with pytest.raises(ValueError, match="broken"):
        await anext(tell)


async def test_work_that_has_much_to_say_while_it_ends_is_not_kept_from_ending() -> None:
    begun_to_work, told = asyncio.Event(), 0

    async def work(tell: TurnStream) -> TurnEnded:
        nonlocal told
        begun_to_work.set()
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(10 * AHEAD):
                await tell.say(TextDelta("bye"))
                told += 1
        raise AssertionError

    tell = TurnStream(work)
    waiting = asyncio.ensure_future(anext(tell))
    await begun_to_work.wait()
    tell.cancel()
    await waiting
    assert await tell.finished(1)
    assert told == 10 * AHEAD
