"""The kit against our server, and against servers with one bad habit each: the right checks notice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.conform.bad_habits import LONG_PATIENCE
from tests.conform.tryll import broken_nodes, broken_turns, broken_wire
from tests.conform.tryll.bent import Habit, Way, bent
from tests.conform.tryll.habits import HABITS
from tests.conform.tryll.place import serving
from tests.support.tryll_process import tryll_process
from tests.support.tryll_served import Served
from trunkline.base.process_errors import SpawnError
from trunkline.cli.conform_tryll import command
from trunkline.conform.kit import CheckResult
from trunkline.conform.record import Record
from trunkline.conform.tryll.stage import Stage, Target
from trunkline.conform.tryll.suite import SUITE
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.codec import frame
from trunkline.wires.tryll.drive.address import ServerAddress

pytestmark = pytest.mark.long

#: Those that registered their habits by being imported.
MODULES = (broken_nodes, broken_turns, broken_wire)
#: Habits that are put to the test at the same time: they mostly wait.
BESIDE = 6
#: How long one of them may keep a check waiting.
HABIT_SECONDS = 1.0


async def run(target: Target, patterns: Sequence[str] = ()) -> tuple[list[CheckResult], list[Record]]:
    checks = SUITE.playable(SUITE.select(patterns), target.has)
    return await SUITE.run(checks, lambda name: Stage(target, name), jobs=8)


def target_of(server: Served, folder: Path, timeout: float = 10.0) -> Target:
    return Target(ServerAddress(server.host, server.port), timeout, root=str(folder / "root"))


async def test_our_server_passes_every_must_and_should(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        results, records = await run(target_of(server, tmp_path))
    wrong = [each for each in results if each.verdict != "passed" and each.check.tier != "MAY"]
    assert [(each.check.id, each.verdict, each.reason) for each in wrong] == []
    assert [each.check.id for each in results] == list(SUITE.checks)
    assert not any((tmp_path / "root").iterdir()), "the kit left files in the storage folder"
    assert all(record.export()["lines"] for record in records)


async def results_against(
    name: str, server: Served, folder: Path, checks: Iterable[str], timeout: float
) -> list[CheckResult]:
    """What checks find out about a server with a habit; nothing if none of them got there."""
    results: list[CheckResult] = []
    async with bent(HABITS[name](), server.host, server.port) as (host, port):
        target = Target(ServerAddress(host, port), timeout, root=str(folder / "root"))
        try:
            results, _ = await run(target, sorted(checks))
        except* SpawnError:
            pass
    return results


@pytest.mark.timeout(300)
async def test_a_bad_habit_fails_its_checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SUITE, "gate", None)
    slots = asyncio.Semaphore(BESIDE)

    async def problems(name: str, server: Served) -> list[str]:
        fails = set(HABITS[name]().fails)
        async with slots:
            results = await results_against(name, server, tmp_path, fails, HABIT_SECONDS)
            # The limit is one for connections, too, and the machine is shared: who did not get there saw no habit.
            reached = [each for each in results if each.verdict != "not exercised"]
            if late := fails - {each.check.id for each in reached}:
                results = reached + await results_against(name, server, tmp_path, late, LONG_PATIENCE)
        missing = fails - {each.check.id for each in results}
        spared = [each for each in results if each.verdict != "failed"]
        return [f"{name}: {check} was not run" for check in missing] + [
            f"{name}: {each.check.id} {each.verdict} {each.reason}" for each in spared
        ]

    async with serving(tmp_path) as server:
        found = await asyncio.gather(*(problems(name, server) for name in HABITS))
    assert [problem for each in found for problem in each] == []


@pytest.mark.process
def test_the_server_of_the_command_passes_on_its_real_socket(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    with tryll_process("--storage-root", str(root)) as server:
        done = CliRunner().invoke(
            command, (f"127.0.0.1:{server.port}", "--storage-root", str(root), "--strict", "--jobs", "8")
        )
        assert done.exit_code == 0, done.output
        assert "· conforms ·" in done.output
    assert "".join(server.said) == ""


async def test_a_way_that_bends_nothing_changes_nothing(tmp_path: Path) -> None:
    """The habits fail for what they do, and not for the way they come."""
    async with serving(tmp_path) as server, bent(Habit(()), server.host, server.port) as (host, port):
        results, _ = await run(Target(ServerAddress(host, port), root=str(tmp_path / "root")))
    wrong = [each for each in results if each.verdict != "passed" and each.check.tier != "MAY"]
    assert [(each.check.id, each.verdict, each.reason) for each in wrong] == []


@pytest.mark.parametrize("check", ["tryll.turn.busy", "tryll.turn.change", "tryll.turn.parallel"])
@pytest.mark.parametrize(("late", "verdict"), [(1, "passed"), (3, "failed")])
async def test_a_turn_that_was_over_too_soon_says_nothing_unless_all_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check: str, late: int, verdict: str
) -> None:
    """On the first connections, what comes during a turn reaches the server when that is over."""
    monkeypatch.setattr(SUITE, "gate", None)
    ways: list[Way] = []

    def holds(way: Way, message: Any, payload: bytes) -> Any:
        if not isinstance(message, m.SendMessageRequest | m.ChangeAgentParamRequest):
            return None
        if way not in ways:
            ways.append(way)
            way.state["held"] = []
        elif ways.index(way) < late and "held" in way.state:
            way.state["held"].append(frame(payload))
            return ()
        return None

    def lets_go(way: Way, message: m.Message) -> None:
        if isinstance(message, m.TurnComplete):
            way.server.write(b"".join(way.state.pop("held", ())))

    habit = Habit((), requests=holds, answers=lets_go)
    async with serving(tmp_path) as server, bent(habit, server.host, server.port) as (host, port):
        (result,), _ = await run(Target(ServerAddress(host, port), 4.0), [check])
    assert result.verdict == verdict, result.reason


def test_every_check_is_failed_by_some_habit() -> None:
    failed = {check for make in HABITS.values() for check in make().fails}
    assert sorted(set(SUITE.checks) - failed) == []
