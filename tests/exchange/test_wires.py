"""The wires of an exchange run as its file says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from tests.exchange.api_world import world
from tests.support.patience import PATIENCE_SECONDS
from trunkline.core.faults import ConfigError
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.settings import WireSettings
from trunkline.exchange.supervisor import Pace
from trunkline.exchange.wires import Wires

NOW = Pace(first_delay=0.0, longest_delay=0.0, crashes=100)


class Line:
    """A wire that serves nobody."""

    about = trial = ""

    def __init__(self, settings: WireSettings, crashes: int = 0) -> None:
        self.name = settings.name
        self.where = str(settings.keys.get("listen", "here"))
        self.stopped = False
        self._crashes = crashes

    async def run(self, stop: asyncio.Event, reachable: Callable[[], None]) -> None:
        if self._crashes:
            self._crashes -= 1
            raise RuntimeError("It fell over.")
        reachable()
        await stop.wait()
        self.stopped = True


class Running:
    """Wires, what was made for them, and what they say."""

    def __init__(self, exchange: Exchange) -> None:
        self.made: list[Line] = []
        self.said: asyncio.Queue[str] = asyncio.Queue()
        self.crashes = 0
        self.wires = Wires(exchange, self.said.put_nowait, self._make, NOW)

    def _make(self, exchange: Exchange, settings: WireSettings) -> Line:
        if settings.keys.get("broken"):
            raise ConfigError("It cannot be served.")
        self.made.append(Line(settings, self.crashes))
        return self.made[-1]

    async def heard(self, count: int = 1) -> list[str]:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return [await self.said.get() for _ in range(count)]


@asynccontextmanager
async def running(home: Path) -> AsyncIterator[Running]:
    async with world(home) as found:
        lines = Running(found.exchange)
        try:
            yield lines
        finally:
            await lines.wires.close()


def wires(**listen: str) -> dict[str, WireSettings]:
    return {name: WireSettings(name, None, {"listen": address}) for name, address in listen.items()}


async def test_new_settings_start_what_is_new_stop_what_is_gone_and_leave_the_rest_alone(tmp_path: Path) -> None:
    async with running(tmp_path) as lines:
        await lines.wires.take_up(wires(a="1", b="1", c="1"))
        assert sorted(await lines.heard(3)) == [f"wire {name}: reachable  1" for name in "abc"]
        a, b, c = lines.made
        await lines.wires.take_up(wires(a="1", b="2", d="1"))
        assert sorted(await lines.heard(2)) == ["wire b: reachable  2", "wire d: reachable  1"]
        assert (a.stopped, b.stopped, c.stopped) == (False, True, True)
        assert [line.name for line in lines.made] == ["a", "b", "c", "b", "d"]
        await lines.wires.close()
        assert lines.wires.names == ()
        assert all(line.stopped for line in lines.made)


async def test_one_that_crashes_is_run_again_and_said_to_be(tmp_path: Path) -> None:
    async with running(tmp_path) as lines:
        lines.crashes = 1
        await lines.wires.take_up(wires(a="1"))
        crashed, reachable = await lines.heard(2)
        assert "wire a: crashed  RuntimeError: It fell over." in crashed
        assert reachable == "wire a: reachable  1"


async def test_one_that_cannot_be_served_is_told_of_and_keeps_none_of_the_others(tmp_path: Path) -> None:
    async with running(tmp_path) as lines:
        await lines.wires.take_up({"x": WireSettings("x", None, {"broken": True}), **wires(a="1")})
        assert await lines.heard(2) == ["wire x: given up  It cannot be served.", "wire a: reachable  1"]
        assert lines.wires.names == ("a",)
