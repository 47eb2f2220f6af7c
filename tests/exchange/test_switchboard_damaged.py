"""A session whose log was damaged from outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.exchange_world import CommandedAgent, World
from trunkline.core.faults import SessionDamaged


async def test_a_session_whose_log_is_damaged_can_be_removed_and_begun_anew(tmp_path: Path) -> None:
    world = World(tmp_path, agent=CommandedAgent())
    async with world.living() as life:
        await life.say(await life.open(), "say one")
    _damage(tmp_path)
    async with world.living() as life:
        with pytest.raises(SessionDamaged):
            await life.open()
        await life.switchboard.remove("s1")
        assert await life.switchboard.row("s1") is None
        live = await life.open()
        await life.say(live, "say two")
        await life.rest(live)
    assert world.ends("s1") == ["success"]


def _damage(home: Path) -> None:
    (log,) = home.rglob("s1.log")
    log.write_bytes(b"no log")
