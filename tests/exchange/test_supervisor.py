"""Services side by side: restarted, given up, and stopped in bounded time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.core.faults import ConfigError
from trunkline.exchange.service import Service
from trunkline.exchange.supervisor import Pace, State, Supervisor

pytestmark = pytest.mark.virtual_time

# The proportions of the real one.
PACE = Pace(first_delay=0.001, longest_delay=0.004, steady=60.0, crashes=6, stopping=0.1, cancelling=0.1)


class FakeService:
    """Does in each run what its next act says; serves until `stop` when it has none left."""

    def __init__(self, name: str, *acts: str) -> None:
        self.name = name
        self.where = f"tcp://127.0.0.1/{name}"
        self.about = f"what {name} is for"
        self.trial = f"try {name}"
        self.runs = 0
        self.ended = False
        self._acts = list(acts)

    async def run(self, stop: asyncio.Event, reachable: Callable[[], None]) -> None:
        self.runs += 1
        act = self._acts.pop(0) if self._acts else "serve"
        if act == "crash":
            raise RuntimeError(f"boom {self.runs}")
        if act == "cannot":
            raise ConfigError("It is in use.", hint="Stop the other one.")
        reachable()
        if act == "return":
            return
        try:
            # "ignore stop" needs to be cancelled; "ignore all" does not even mind that.
            await (asyncio.Event() if act.startswith("ignore") else stop).wait()
        except asyncio.CancelledError:
            if act != "ignore all":
                raise
            await asyncio.sleep(PACE.cancelling * 3)
        finally:
            self.ended = True


class Reports:
    """What the supervisor said, and a way to wait for it."""

    def __init__(self) -> None:
        self.all: list[tuple[str, State, str]] = []
        self._news = asyncio.Event()

    def __call__(self, service: Service, state: State, detail: str) -> None:
        self.all.append((service.name, state, detail))
        self._news.set()

    def of(self, name: str) -> list[tuple[State, str]]:
        return [(state, detail) for service, state, detail in self.all if service == name]

    async def wait_for(self, name: str, state: State, count: int = 1) -> None:
        while sum(report[:2] == (name, state) for report in self.all) < count:
            self._news.clear()
            await self._news.wait()


@asynccontextmanager
async def running(*fakes: FakeService, pace: Pace = PACE) -> AsyncIterator[tuple[Reports, Supervisor]]:
    """The services under a supervisor that is stopped at the end, and must have gone well."""
    reports, stop = Reports(), asyncio.Event()
    supervisor = Supervisor(fakes, reports, pace)
    async with asyncio.timeout(PATIENCE_SECONDS):
        task = asyncio.create_task(supervisor.run(stop))
        yield reports, supervisor
        stop.set()
        assert await task is True


async def test_a_service_that_crashes_is_run_again_later_and_later_and_the_other_does_not_notice() -> None:
    shaky, steady = FakeService("shaky", "crash", "crash", "return", "crash"), FakeService("steady")
    async with running(shaky, steady) as (reports, _):
        await reports.wait_for("shaky", "reachable", 2)
    assert reports.of("shaky") == [
        ("starting", ""),
        ("crashed", "RuntimeError: boom 1; next try in 0.001 s"),
        ("starting", ""),
        ("crashed", "RuntimeError: boom 2; next try in 0.002 s"),
        ("starting", ""),
        ("reachable", ""),
        ("crashed", "it ended by itself; next try in 0.004 s"),
        ("starting", ""),
        ("crashed", "RuntimeError: boom 4; next try in 0.004 s"),
        ("starting", ""),
        ("reachable", ""),
        ("stopped", ""),
    ]
    assert reports.of("steady") == [("starting", ""), ("reachable", ""), ("stopped", "")]


async def test_a_service_that_only_crashes_is_given_up_and_the_other_goes_on() -> None:
    broken, steady = FakeService("broken", *["crash"] * 100), FakeService("steady")
    async with running(broken, steady) as (reports, _):
        await reports.wait_for("broken", "given up")
    assert broken.runs == PACE.crashes
    assert reports.of("broken")[-1] == ("given up", "RuntimeError: boom 6, 6 times in a row")
    assert reports.of("steady")[-1] == ("stopped", "")


async def test_a_service_that_cannot_work_as_things_are_is_given_up_at_once_and_the_other_goes_on() -> None:
    hopeless, steady = FakeService("hopeless", "cannot"), FakeService("steady")
    async with running(hopeless, steady) as (reports, _):
        await reports.wait_for("hopeless", "given up")
    assert reports.of("hopeless") == [("starting", ""), ("given up", "It is in use. Stop the other one.")]
    assert reports.of("steady")[-1] == ("stopped", "")


async def test_a_run_that_lasted_ends_the_row_of_crashes() -> None:
    lasting = FakeService("lasting", *["crash"] * 20)
    async with running(lasting, pace=PACE.replace(steady=0.0)) as (reports, _):
        await reports.wait_for("lasting", "reachable")
    assert lasting.runs == 21
    assert ("crashed", "RuntimeError: boom 20; next try in 0.001 s") in reports.of("lasting")


async def test_it_ends_when_every_service_was_given_up() -> None:
    reports = Reports()
    supervisor = Supervisor([FakeService(name, *["crash"] * 100) for name in "ab"], reports, PACE)
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await supervisor.run(asyncio.Event()) is False
    assert {name for name, state, _ in reports.all if state == "given up"} == {"a", "b"}


async def test_a_service_that_waits_for_its_next_run_is_stopped_at_once() -> None:
    broken = FakeService("broken", "crash")
    async with running(broken, pace=PACE.replace(first_delay=600.0, longest_delay=600.0)) as (reports, _):
        await reports.wait_for("broken", "crashed")
    assert reports.of("broken")[-1] == ("stopped", "")


@pytest.mark.parametrize(("act", "stuck"), [("ignore stop", []), ("ignore all", ["deaf"])])
async def test_a_service_that_does_not_stop_does_not_hold_up_the_others_or_the_end(act: str, stuck: list[str]) -> None:
    deaf, good = FakeService("deaf", act), FakeService("good")
    async with running(deaf, good) as (reports, supervisor):
        await reports.wait_for("deaf", "reachable")
        await reports.wait_for("good", "reachable")
    assert supervisor.stuck == stuck
    assert good.ended
    assert deaf.ended is not bool(stuck)
    # So that nothing is left when the loop closes.
    await asyncio.gather(*(task for task in asyncio.all_tasks() if task is not asyncio.current_task()))


async def test_cancelling_the_supervisor_stops_the_services() -> None:
    service, reports = FakeService("a"), Reports()
    task = asyncio.create_task(Supervisor([service], reports, PACE).run(asyncio.Event()))
    async with asyncio.timeout(PATIENCE_SECONDS):
        await reports.wait_for("a", "reachable")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert service.ended
