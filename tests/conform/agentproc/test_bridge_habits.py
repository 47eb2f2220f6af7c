"""The kit against bridges with one bad habit each: the right check notices. This shows that a check can fail at all."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from tests.conform.agentproc.broken_bridges import HABITS
from trunkline.conform.agentproc.bridge import timeouts
from trunkline.conform.agentproc.bridge.stage import Ask, Stage, Target, command
from trunkline.conform.agentproc.bridge.suite import SUITE
from trunkline.conform.kit import CheckResult

RUN_BRIDGE = Path(__file__).with_name("run_bridge.py")
PLACES = ("{profile}", "{message}", "{session}")
# Each in a word with a sign in front of it, so that it is there also when there is nothing to say.
OPTIONAL = ("{session_name}", "{from}", "{image}", "{file}")
# Longer than a turn takes on a busy machine, shorter than the bridges that hang.
PATIENCE = 2.0
BRIDGES_AT_A_TIME = 8
# They do nothing but wait for their limits.
SLOW_BRIDGES_AT_A_TIME = 20


def target(name: str, patience: float) -> Target:
    words = tuple(f"={place}" for place in OPTIONAL)
    habit = HABITS.get(name)
    module = habit.bridge.__module__.rpartition(".")[2] if habit else "good_bridge"
    argv = (sys.executable, "-S", "-E", str(RUN_BRIDGE), f"{module}.{name}", *PLACES, *words)
    return Target(argv, {}, timeout=2 * patience, patience=patience)


async def results_of(name: str, *patterns: str, jobs: int = 2, patience: float = PATIENCE) -> list[CheckResult]:
    made = target(name, patience)
    results, _ = await SUITE.run(SUITE.select(patterns), lambda check: Stage(made, check), jobs=jobs)
    return results


async def unnoticed(name: str, fails: tuple[str, ...], slots: asyncio.Semaphore) -> list[str]:
    """What the kit did not notice about a bridge."""
    async with slots:
        results = await results_of(name, *fails)
    return [f"{name}: {each.check.id} {each.verdict} {each.reason}" for each in results if each.verdict != "failed"]


def group(check: str) -> str:
    return check.split(".")[1]


@pytest.mark.process
@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("slow", [False, True], ids=["at once", "in time"])
async def test_a_bad_habit_fails_its_checks(slow: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SUITE, "gate", None)
    slots = asyncio.Semaphore(SLOW_BRIDGES_AT_A_TIME if slow else BRIDGES_AT_A_TIME)
    tried = [
        unnoticed(name, fails, slots)
        for name, habit in HABITS.items()
        if (fails := tuple(check for check in habit.fails if (group(check) in ("timeout", "tree")) == slow))
    ]
    assert [problem for found in await asyncio.gather(*tried) for problem in found] == []


def test_every_check_is_failed_by_some_habit() -> None:
    failed = {check for habit in HABITS.values() for check in habit.fails}
    assert sorted(set(SUITE.checks) ^ failed) == []


@pytest.mark.process
@pytest.mark.long
@pytest.mark.timeout(300)
async def test_a_bridge_that_follows_the_protocol_passes_every_check() -> None:
    made = target("GoodBridge", 5.0)
    results, records = await SUITE.run(SUITE.select(()), lambda check: Stage(made, check), jobs=8)
    # It tells all at the end, so nothing can be seen while the agent runs.
    assert [(each.check.id, each.reason) for each in results if each.verdict != "passed"] == [
        ("br.partial.live", "the bridge shows everything at the end")
    ]
    assert {line["from"] for record in records for line in record.export()["lines"]} == {"bridge", "kit"}


@pytest.mark.process
async def test_an_agent_that_had_no_time_to_prepare_is_not_held_against_a_bridge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timeouts, "LIMIT", 0.01)
    checks = [f"br.timeout.{name}" for name in ("ends", "grace", "kill", "partials", "late", "told")]
    results = await results_of("GoodBridge", *checks, jobs=4, patience=5.0)
    assert [(each.check.id, each.reason) for each in results if each.verdict != "passed"] == []


def test_a_command_is_filled_in_one_pass_and_without_what_there_is_nothing_to_say_of() -> None:
    template = ("b", "--p={profile}", "{message}", "--from", "{from}", "--name", "{session_name}", "{session}")
    asked = Ask("{session}", session="s", session_name="n")
    assert command(template, "p.yaml", asked) == ("b", "--p=p.yaml", "{session}", "--name", "n", "s")


@pytest.mark.parametrize(
    ("template", "words"),
    [
        (("b", "{message}", "{from}"), ("b", "hi")),
        (("{from}",), ()),
        (("b", "-m{message}", "{from}"), ("b", "-mhi")),
        (("b", "--", "{from}", "{image}", "{message}"), ("b", "--", "hi")),
        (("b", "--from", "{from}", "{image}", "{message}"), ("b", "hi")),
    ],
)
def test_only_a_flag_goes_with_what_there_is_nothing_to_say_of(
    template: tuple[str, ...], words: tuple[str, ...]
) -> None:
    assert command(template, "p.yaml", Ask("hi")) == words
