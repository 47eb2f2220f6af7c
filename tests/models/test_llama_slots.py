"""Who waits for a place of an engine, and how long."""

from __future__ import annotations

import asyncio

from tests.support.loop import until
from trunkline.core.graph import queueing
from trunkline.models.llama_slots import SlotPool


async def test_a_turn_that_waits_for_a_place_has_that_on_its_account_and_others_have_not() -> None:
    pool = SlotPool(1)
    first = queueing.WaitAccount()
    queueing.account.set(first)
    place = await pool.take(None)

    async def other() -> queueing.WaitAccount:
        account = queueing.WaitAccount()
        queueing.account.set(account)
        pool.give(await pool.take(None))
        return account

    waiting = asyncio.create_task(other())
    await until(lambda: bool(pool.waiting))
    assert pool.waiting == 1
    pool.give(place)
    assert (await waiting).seconds > 0
    assert (first.seconds, pool.waiting) == (0, 0)


async def test_whoever_has_no_account_waits_as_well() -> None:
    queueing.account.set(None)
    pool = SlotPool(1)
    place = await pool.take(None)
    waiting = asyncio.create_task(pool.take(None))
    await until(lambda: bool(pool.waiting))
    pool.give(place)
    assert await waiting == place
