"""Sessions that nobody uses are let go of, and all others are not."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from tests.support.loop import until
from trunkline.exchange import idle_sweep
from trunkline.exchange.doors import Doors
from trunkline.exchange.idle_sweep import IdleSweep
from trunkline.exchange.live_session import LiveSession

#: Longer than any test, and shorter than a turn of the loop.
NEVER, AT_ONCE = 3600.0, 0.0


class Live:
    """A session at work."""

    def __init__(self, id: str, *, is_idle: bool = True) -> None:
        self.id = id
        self.is_idle = is_idle
        self.used = asyncio.get_running_loop().time()


class Sweeping:
    """A sweep over these sessions, with what it let go of."""

    def __init__(self, *lives: Live, seconds: float = AT_ONCE) -> None:
        self.lives = list(lives)
        self.seconds = seconds
        self.gone: list[str] = []
        self.looked = 0
        self.doors = Doors()
        self.sweep = IdleSweep(self.doors, self._at_work, self._let_go, lambda: self.seconds)

    def _at_work(self) -> list[LiveSession]:
        self.looked += 1
        return cast("list[LiveSession]", list(self.lives))

    async def _let_go(self, live: Any) -> None:
        if live.id == "bad":
            raise RuntimeError("its program does not end")
        self.gone.append(live.id)
        self.lives.remove(live)

    async def __aenter__(self) -> Sweeping:
        self.sweep.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.sweep.close()
        await self.doors.close()


async def test_what_nobody_has_used_for_a_while_is_let_go_of_and_what_is_in_use_is_not() -> None:
    async with Sweeping(Live("idle"), Live("busy", is_idle=False)) as sweeping:
        await until(lambda: sweeping.gone == ["idle"])
        before = sweeping.looked
        await until(lambda: sweeping.looked > before + 2)
        assert sweeping.gone == ["idle"]
        sweeping.lives[0].is_idle = True
        await until(lambda: sweeping.gone == ["idle", "busy"])


async def test_how_long_it_stays_can_change_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle_sweep, "SWEEP_SECONDS", 0.001)
    async with Sweeping(Live("s"), seconds=NEVER) as sweeping:
        await until(lambda: sweeping.looked > 3)
        assert sweeping.gone == []
        sweeping.seconds = AT_ONCE
        await until(lambda: sweeping.gone == ["s"])


async def test_one_that_cannot_be_let_go_of_does_not_keep_the_others(caplog: pytest.LogCaptureFixture) -> None:
    async with Sweeping(Live("bad"), Live("good")) as sweeping:
        await until(lambda: sweeping.gone == ["good"])
    assert "session bad could not be let go of in good order" in caplog.text


async def test_nothing_is_looked_at_once_it_is_closed() -> None:
    async with Sweeping() as sweeping:
        await until(lambda: sweeping.looked > 0)
    sweeping.lives.append(Live("late"))
    looked = sweeping.looked
    for _ in range(5):
        await asyncio.sleep(0)
    assert (sweeping.looked, sweeping.gone) == (looked, [])
    await sweeping.sweep.close()
