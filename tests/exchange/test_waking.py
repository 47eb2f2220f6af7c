"""Sessions that are woken after a start."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.core.faults import AgentFailed
from trunkline.exchange.waking import FIRST_PAUSE, WOKEN_AT_ONCE, Waking


async def test_all_are_woken_but_only_some_at_once_and_who_cannot_be_is_given_up() -> None:
    at_once, most, woken, given_up = 0, 0, [], {}

    async def find(id: str) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0)
        at_once -= 1
        if id == "7":
            raise AgentFailed("It is ill.")
        woken.append(id)

    async def gave_up(id: str, why: str) -> None:
        given_up[id] = why

    waking = Waking(find, gave_up)
    waking.begin(map(str, range(100)))
    async with asyncio.timeout(PATIENCE_SECONDS):
        await waking.over()
    assert len(woken) == 99
    assert most == WOKEN_AT_ONCE
    assert given_up == {"7": "The agent cannot come back: It is ill."}


async def test_an_exchange_that_ends_does_not_wait_for_those_that_are_still_asleep() -> None:
    begun = asyncio.Event()

    async def never(id: str) -> None:
        begun.set()
        await asyncio.Event().wait()

    async def gave_up(id: str, why: str) -> None:
        raise AssertionError(why)

    waking = Waking(never, gave_up)
    await waking.over()
    waking.begin(["s"])
    async with asyncio.timeout(PATIENCE_SECONDS):
        await begun.wait()
        await waking.close()


async def test_one_whose_agent_may_be_had_later_is_tried_again_later_and_later_and_not_given_up() -> None:
    tries, pauses, awake = 0, [], asyncio.Event()
    again = asyncio.Event()

    async def find(id: str) -> None:
        nonlocal tries
        tries += 1
        if tries < 4:
            raise AgentFailed("Its next try is in 0.2 s.", retryable=True)
        awake.set()

    async def gave_up(id: str, why: str) -> None:
        raise AssertionError(why)

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        await again.wait()

    waking = Waking(find, gave_up, pause)
    waking.begin(["s"])
    async with asyncio.timeout(PATIENCE_SECONDS):
        await waking.over()
        assert not awake.is_set()
        again.set()
        await awake.wait()
    assert pauses == [FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE]
    await waking.close()


async def test_who_asks_about_sessions_waits_for_these_alone_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    gates = {id: asyncio.Event() for id in "ab"}
    given_up = []

    async def find(id: str) -> None:
        await gates[id].wait()
        raise AgentFailed("It is ill.")

    async def gave_up(id: str, why: str) -> None:
        given_up.append(id)

    waking = Waking(find, gave_up)
    waking.begin("ab")
    of_b, of_all = asyncio.create_task(waking.awaited(["b", "unknown"])), asyncio.create_task(waking.awaited())
    await waking.awaited(["unknown"])
    assert not of_b.done()
    gates["b"].set()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await of_b
        assert (given_up, of_all.done()) == (["b"], False)
        gates["a"].set()
        await of_all
    assert given_up == ["b", "a"]

    gates["a"].clear()
    monkeypatch.setattr("trunkline.exchange.waking.AWAITED_SECONDS", 0.0)
    waking.begin("a")
    async with asyncio.timeout(PATIENCE_SECONDS):
        await waking.awaited()
        await waking.close()
    assert given_up == ["b", "a"]


async def test_one_that_is_to_be_tried_later_is_tried_at_once_when_it_is_asked_for_again() -> None:
    tries, paused = 0, asyncio.Event()

    async def find(id: str) -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise AgentFailed("Its node is gone.", retryable=True)

    async def gave_up(id: str, why: str) -> None:
        raise AssertionError(why)

    async def pause(seconds: float) -> None:
        paused.set()
        await asyncio.Event().wait()

    waking = Waking(find, gave_up, pause)
    async with asyncio.timeout(PATIENCE_SECONDS):
        waking.begin(["s"])
        await paused.wait()
        waking.begin(["s"])
        await waking.awaited()
    assert tries == 2
    await waking.close()
