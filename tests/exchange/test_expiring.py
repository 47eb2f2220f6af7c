"""Approvals that nobody gives in time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.exchange.api_world import World, world
from tests.support.patience import PATIENCE_SECONDS
from trunkline.core.agent import Deny
from trunkline.core.events import ToolRequested
from trunkline.exchange.approvals import Approval
from trunkline.exchange.expiring import Expiry
from trunkline.exchange.switchboard import Switchboard
from trunkline.store.database import DatabaseGone

HOUR = 3600.0


async def asked(found: World) -> Approval:
    """Something waits for approval."""
    heard: asyncio.Queue[Approval] = asyncio.Queue()
    found.exchange.told.append(heard.put_nowait)
    session = await found.session()
    await found.say(session)
    found.fake.say(ToolRequested("call-1", "Bash", "exec", {"command": "ls"}, "Run ls"))
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await heard.get()


def expiry(found: World, seconds: float | None = HOUR) -> Expiry:
    return Expiry(found.exchange.switchboard, found.clock, lambda: seconds)


async def row(found: World, approval: Approval) -> dict[str, Any]:
    rows = (await found.get("/api/approvals")).json()["approvals"]
    return next(each for each in rows if each["id"] == approval.id)


async def test_what_has_waited_too_long_is_denied_with_the_reason_and_the_agent_hears_it(tmp_path: Path) -> None:
    async with world(tmp_path) as found:
        approval = await asked(found)
        found.clock.now += int(HOUR * 1000)
        assert await expiry(found).look() == 1
        told = await row(found, approval)
        assert (told["state"], told["decided_by"]) == ("denied", "the exchange")
        assert told["reason"] == "Nobody answered within 3600 seconds."
        assert found.fake.decisions == [("call-1", Deny("Nobody answered within 3600 seconds."))]
        assert await expiry(found).look() == 0


async def test_what_has_not_waited_that_long_still_waits(tmp_path: Path) -> None:
    async with world(tmp_path) as found:
        approval = await asked(found)
        found.clock.now += int(HOUR * 1000) // 2
        assert await expiry(found).look() == 0
        assert (await row(found, approval))["state"] == "pending"


async def test_without_a_limit_it_waits_for_ever(tmp_path: Path) -> None:
    async with world(tmp_path) as found:
        approval = await asked(found)
        found.clock.now += int(HOUR * 1000) * 24 * 3650
        assert await expiry(found, None).look() == 0
        assert (await row(found, approval))["state"] == "pending"


@pytest.mark.virtual_time
async def test_a_database_that_does_not_answer_does_not_end_the_exchange(tmp_path: Path) -> None:
    looks = 0

    async def gone(until: int) -> list[Approval]:
        nonlocal looks
        looks += 1
        if looks == 2:
            ending.set()
        raise DatabaseGone("the disk is full")

    ending = asyncio.Event()
    board = cast(Switchboard, SimpleNamespace(approvals=SimpleNamespace(overdue=gone)))
    await Expiry(board, lambda: 0, lambda: HOUR).run(ending)
    assert looks == 2
