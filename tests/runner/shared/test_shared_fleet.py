"""Launchers that share agents, in one process and with fake runners: who knows what, and who runs which."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.launched import HANGS, MemoryKeyring, Runners, config, keys
from tests.support.patience import PATIENCE_SECONDS
from trunkline.core.faults import AgentBusy, ConfigError
from trunkline.runner import fleet as fleets
from trunkline.runner import watching
from trunkline.runner.config import RunnerConfig
from trunkline.runner.cycle import CycleReport
from trunkline.runner.fleet import AlreadyRunning, FleetHome
from trunkline.runner.holding import Hold
from trunkline.runner.opening import holding
from trunkline.runner.shared import roster as rosters
from trunkline.runner.shared.fleet import SharedFleet
from trunkline.runner.shared.roster import open_roster
from trunkline.store.database import Database, DatabaseGone

pytestmark = pytest.mark.slow

SECRETS = {"runnerToken": "rnr_a1_0123456789"}


@pytest.fixture(autouse=True)
def _paced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rosters, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(fleets, "FIRST_CYCLE_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(fleets, "KEYRING_SECONDS", PATIENCE_SECONDS)


class Launcher:
    """One of several, with fake runners."""

    def __init__(self, fleet: SharedFleet, runners: Runners) -> None:
        self.fleet = fleet
        self.runners = runners

    @property
    def running(self) -> set[str]:
        return set(self.fleet.engines)

    async def state(self, agent_id: str = "a1") -> str:
        """How one of its agents is; an empty text if it does not know it."""
        for each in (await watching.status(self.fleet))["agents"]:
            if each["agentId"] == agent_id:
                return str(each["state"])
        return ""


Make = Callable[..., Any]


@pytest.fixture
async def make(postgres_url: str, tmp_path: Path) -> AsyncIterator[Make]:
    """Makes launchers, each with a home of its own."""
    made: list[Launcher] = []

    async def launcher(
        *reports: CycleReport, named: tuple[dict[str, Any], ...] = (), keyring: MemoryKeyring | None = None
    ) -> Launcher:
        runners = Runners(*reports)
        place = FleetHome(str(tmp_path / str(len(made))), runners, agents=named)
        fleet = SharedFleet(place, keys(keyring), await open_roster(postgres_url))
        await fleet.begin()
        made.append(Launcher(fleet, runners))
        return made[-1]

    yield launcher
    for each in made:
        await each.fleet.close()
        await each.fleet._shared.close()


async def eventually(condition: Callable[[], Any], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        found = condition()
        if await found if asyncio.iscoroutine(found) else found:
            return
        assert time.monotonic() < deadline, f"it never came about that {what}"
        await asyncio.sleep(0.01)


async def test_whoever_has_its_secrets_stands_by_and_who_has_not_waits_for_them(make: Make) -> None:
    first, second, third = await make(), await make(), await make(keyring=MemoryKeyring())
    await third.fleet._keys.save("a1", SECRETS)
    await first.fleet.start(config())
    for launcher, state in ((second, "waiting for secrets"), (third, "standing by")):
        await eventually(lambda: _is(launcher, state), f"it is {state}")  # noqa: B023 - awaited at once
    assert await second.fleet.start({"agentId": "a1", **SECRETS}) == "a1"
    assert await second.state() == "standing by"
    assert [len(each.runners.made) for each in (first, second, third)] == [1, 0, 0]
    await first.fleet.close()
    await eventually(lambda: second.running | third.running == {"a1"}, "one of them runs it")
    assert not second.running & third.running


async def _is(launcher: Launcher, state: str) -> bool:
    return await launcher.state() == state


@pytest.mark.parametrize("hangs", [False, True], ids=["gone", "silent"])
async def test_figures_tell_of_leases_and_of_a_database_that_is_away(
    make: Make, hangs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await make(), await make()
    await first.fleet.start(config())
    await second.fleet.start(config())
    await eventually(lambda: _is(second, "standing by"), "it stands by")

    def told(launcher: Launcher, sample: str) -> bool:
        return f"\ntrunkline_runner_{sample}\n" in launcher.fleet.figures.text(launcher.fleet)

    assert told(first, "leases 1")
    assert told(second, "leases 0")
    assert told(second, 'agents{state="standing_by"} 1')
    assert told(second, "database_up 1")

    back = asyncio.Event()

    async def away(crew: object) -> None:
        if hangs:
            await back.wait()
        raise DatabaseGone("it is away")

    with monkeypatch.context() as patched:
        patched.setattr(second.fleet._shared, "_look", away)
        patched.setattr(rosters, "ANSWER_SECONDS", 0.05 if hangs else PATIENCE_SECONDS)
        await eventually(lambda: told(second, "database_up 0"), "it is told that the database is away")
    back.set()
    await eventually(lambda: told(second, "database_up 1"), "it is told that the database is back")


async def test_a_change_of_the_configuration_counts_wherever_the_agent_runs_next(make: Make) -> None:
    first, second = await make(), await make()
    await first.fleet.start(config())
    await second.fleet.start(config())
    await first.fleet.configure("a1", {"runtime": {"intervalSec": 90}})
    assert first.runners.made[-1].config.interval_seconds == 90
    await eventually(lambda: second.fleet._standing["a1"].interval_seconds == 90, "the other one knows")
    # And from the one that stands by, to the one that runs it.
    await second.fleet.start(config(runtime={"intervalSec": 120}))
    await eventually(lambda: first.runners.made[-1].config.interval_seconds == 120, "it runs so")
    await first.fleet.close()
    await eventually(lambda: second.running == {"a1"}, "the other one runs it")
    taken = second.runners.made[-1].config
    assert (taken.interval_seconds, taken.runner_token) == (120, SECRETS["runnerToken"])


async def test_one_cycle_is_run_by_whoever_may_run_the_agent_and_by_nobody_else(
    make: Make, postgres_url: str, tmp_path: Path
) -> None:
    first, second = await make(), await make(HANGS)
    await first.fleet.start(config())
    with pytest.raises(AlreadyRunning, match="Another launcher that shares it"):
        await second.fleet.run_once(None, config())
    with pytest.raises(AgentBusy, match="A launcher that shares this agent runs it"):
        async with holding("a1", home=str(tmp_path), db=postgres_url):
            raise AssertionError("somebody has it")
    async with holding("a2", home=str(tmp_path), db=postgres_url) as hold:
        await hold.check()
        with pytest.raises(AlreadyRunning):
            await second.fleet.run_once(None, config("a2"))
    once = asyncio.create_task(second.fleet.run_once(None, config("a2")))
    await eventually(lambda: second.runners.made and second.runners.made[-1].begun, "its cycle runs")
    with pytest.raises(AlreadyRunning):
        await first.fleet.run_once(None, config("a2"))
    once.cancel()
    await asyncio.wait({once})
    assert not (await first.fleet.run_once(None, config("a2"))).error


async def test_who_stops_an_agent_stops_it_everywhere_and_who_stops_all_stops_those_of_one_launcher(
    make: Make,
) -> None:
    first, second = await make(), await make()
    for number in (1, 2, 3, 4):
        for launcher in (first, second):
            await launcher.fleet.start(config(f"a{number}"))
    await eventually(lambda: len(first.running) == len(second.running) == 2, "each has its share")
    theirs = next(iter(first.running))
    await second.fleet.stop(theirs)
    await eventually(lambda: theirs not in first.running, "it is stopped there")
    await eventually(lambda: _state_is(second, theirs, "stopped"), "both know it")
    mine, others = set(second.running), set(first.running)
    await second.fleet.stop()
    assert (second.running, first.running) == (set(), others)
    # Whoever starts one again, at whichever launcher.
    (one, *_) = mine
    await second.fleet.start(config(one))
    await eventually(lambda: one in first.running | second.running, "it runs")
    assert not first.running & second.running


async def _state_is(launcher: Launcher, agent_id: str, state: str) -> bool:
    return await launcher.state(agent_id) == state


async def test_those_that_files_name_are_run_by_whoever_has_such_a_file(make: Make) -> None:
    named = (config("n1"), config("n2"))
    first, second = await make(named=named), await make(named=named)
    stranger = await make()
    await eventually(lambda: first.running | second.running == {"n1", "n2"}, "both run")
    assert not first.running & second.running
    await eventually(lambda: _state_is(stranger, "n1", "standing by"), "the stranger has heard of it")
    await first.fleet.stop("n1")
    await eventually(lambda: "n1" not in first.running | second.running, "it is stopped")
    await first.fleet.close()
    await eventually(lambda: second.running == {"n2"}, "the other one goes on")
    await second.fleet.close()
    assert (stranger.running, stranger.runners.made) == (set(), [])


async def test_an_agent_whose_lease_is_lost_is_laid_down_and_taken_again(make: Make, rows: Database) -> None:
    first = await make()
    await first.fleet.start(config())
    engine = first.fleet.engines["a1"]
    hold = first.fleet._holds["a1"]
    await rows.write(lambda tx: tx.execute("UPDATE runner_lease SET holder = 'somebody else', fence = fence + 1"))
    await eventually(lambda: "a1" not in first.running, "it is laid down")
    assert first.runners.made[0].closed
    with pytest.raises(AgentBusy):
        await hold.check()
    await rows.write(lambda tx: tx.execute("UPDATE runner_lease SET expires_at = 0"))
    await eventually(lambda: first.running == {"a1"}, "it is taken again")
    assert first.fleet.engines["a1"] is not engine
    fence = await rows.read(lambda tx: tx.one("SELECT fence FROM runner_lease"))
    assert fence == {"fence": 3}


async def test_what_one_launcher_cannot_run_is_left_to_the_others(make: Make) -> None:
    first, second = await make(), await make()

    def refuse(config: RunnerConfig, home: str, port: int | None, hold: Hold) -> Any:
        raise ConfigError("A package is missing here.")

    second.fleet.place = second.fleet.place.replace(make=refuse)
    await first.fleet.start(config())
    await second.fleet.start(config())
    await first.fleet.close()
    await eventually(lambda: _tells(second, "A package is missing here."), "it says why")
    third = await make()
    await third.fleet.start(config())
    assert third.running == {"a1"}


async def _tells(launcher: Launcher, text: str) -> bool:
    status = await watching.status(launcher.fleet, "a1")
    return text in str(status["lastError"])


async def test_another_kind_of_database_is_refused() -> None:
    with pytest.raises(ConfigError, match="share their agents in a PostgreSQL database"):
        await open_roster("sqlite:///agents.db")
