"""One agent kept going, on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from tests.support import loop
from tests.support.launched import HANGS, FakeRunner, config
from trunkline.core.usage import Usage
from trunkline.runner.breaker import BreakerSettings
from trunkline.runner.config import normalise
from trunkline.runner.cycle import IN_FLIGHT, CycleReport
from trunkline.runner.engine import LIMIT_IN_EXCHANGES, MAX_OUTPUT, STOP_SECONDS, STOPPED, Engine
from trunkline.runner.secrets import Secrets

FINE = CycleReport()
FAILS = CycleReport(error="the model is away")
TOKEN = "rnr_a1_0123456789"
PATIENCE = BreakerSettings(longest=100.0, failures=3, open_for=60.0, refused_for=600.0, spread=0.0)


class World:
    """An engine on virtual time: an interval of ten seconds, a limit of one second for an exchange."""

    def __init__(self, *reports: CycleReport, runtime: dict[str, Any] | None = None) -> None:
        checked = normalise(config(timeoutSec=1, runtime={"intervalSec": 10, **(runtime or {})}))
        self.runner = FakeRunner(checked, list(reports) or [FINE])
        self.engine = Engine(checked, Secrets(checked.secrets()), self.runner, patience=PATIENCE)

    def play(self, test: Coroutine[Any, Any, None]) -> None:
        async def whole() -> None:
            try:
                await test
            finally:
                await self.engine.stop()

        loop.run(whole())

    async def at(self, seconds: float) -> dict[str, Any]:
        """The status at that time."""
        await asyncio.sleep(seconds - asyncio.get_running_loop().time())
        return self.engine.status()


def test_a_cycle_runs_at_once_and_then_after_every_interval() -> None:
    world = World()

    async def test() -> None:
        world.engine.start()
        await world.engine.first_cycle(5)
        assert world.engine.status()["cycleCount"] == 1
        assert (await world.at(9))["cycleCount"] == 1
        status = await world.at(21)
        assert (status["cycleCount"], status["running"], status["state"], status["lastError"]) == (
            3,
            True,
            "running",
            None,
        )
        assert status["nextRunAt"] > status["lastRunAt"]
        assert status["lastSuccessAt"] is not None

    world.play(test())


def test_one_that_ran_elsewhere_keeps_its_pace() -> None:
    world = World()

    async def test() -> None:
        world.engine.start(idle_seconds=4)
        # Nobody who waits for a first cycle waits for this one.
        await world.engine.first_cycle(5)
        assert world.engine.idle
        assert (await world.at(5))["cycleCount"] == 0
        assert (await world.at(7))["cycleCount"] == 1
        assert (await world.at(17))["cycleCount"] == 2

    world.play(test())


def test_it_is_idle_between_two_cycles_and_not_in_one() -> None:
    world = World(FINE, HANGS)

    async def test() -> None:
        found = [world.engine.idle]
        world.engine.start(idle_seconds=2)
        for seconds in (1, 9, 19):
            await world.at(seconds)
            found.append(world.engine.idle)
        await world.engine.stop()
        assert [*found, world.engine.idle] == [False, True, True, False, False]

    world.play(test())


def test_failures_make_the_pauses_longer_until_a_cycle_works() -> None:
    world = World(FAILS, FAILS, FAILS, FINE)

    async def test() -> None:
        world.engine.start()
        assert (await world.at(19))["failuresInARow"] == 1
        assert (await world.at(21))["failuresInARow"] == 2
        status = await world.at(61)
        assert (status["failuresInARow"], status["breaker"]) == (3, "open")
        assert status["lastError"] == "the model is away"
        assert status["cycleCount"] == 0
        status = await world.at(141)
        assert (status["failuresInARow"], status["breaker"], status["lastError"]) == (0, "closed", None)

    world.play(test())


def test_a_refused_credential_is_told_and_not_asked_about_for_long() -> None:
    world = World(CycleReport(error="Invalid or revoked runner credential", status=401))

    async def test() -> None:
        world.engine.start()
        status = await world.at(599)
        assert (world.runner.begun, status["credentialRefused"], status["breaker"]) == (1, True, "open")
        await world.at(601)
        assert world.runner.begun == 2

    world.play(test())


def test_a_cycle_that_hangs_is_ended_and_the_next_one_runs() -> None:
    world = World(HANGS, FINE)

    async def test() -> None:
        world.engine.start()
        status = await world.at(LIMIT_IN_EXCHANGES + 1)
        assert "took longer than 20 seconds" in status["lastError"]
        status = await world.at(LIMIT_IN_EXCHANGES + 21)
        assert (status["lastError"], status["cycleCount"]) == (None, 1)

    world.play(test())


def test_a_defect_in_a_cycle_is_an_error_like_others_without_secrets() -> None:
    world = World()

    async def broken() -> CycleReport:
        raise RuntimeError(f"what now, {TOKEN}")

    world.runner.cycle = broken  # type: ignore[method-assign]

    async def test() -> None:
        world.engine.start()
        status = await world.at(1)
        assert status["lastError"] == "RuntimeError: what now, [redacted]"
        assert status["running"]

    world.play(test())


def test_one_more_cycle_is_skipped_while_one_is_under_way_and_the_tick_of_one_is_dropped() -> None:
    world = World(HANGS, FINE)

    async def test() -> None:
        world.engine.start()
        await loop.until(lambda: world.runner.begun)
        assert await world.engine.run_once() == CycleReport(error=IN_FLIGHT, skipped=True)
        assert world.runner.begun == 1

    world.play(test())
    late = World(FINE, HANGS, FINE)

    async def dropped() -> None:
        late.engine.start()
        await late.at(9)
        asked = asyncio.create_task(late.engine.run_once())
        await late.at(25)
        # The ticks at 10 and 20 found one under way.
        assert late.runner.begun == 2
        await asked

    late.play(dropped())


def test_a_cycle_out_of_turn_that_works_ends_a_long_pause() -> None:
    world = World(CycleReport(error="no", status=401), FINE)

    async def test() -> None:
        world.engine.start()
        await world.at(30)
        assert (await world.engine.run_once()).error is None
        await world.at(41)
        assert world.runner.begun == 3

    world.play(test())


def test_stopping_ends_a_cycle_that_hangs_and_closes_the_runner() -> None:
    world = World(HANGS)

    async def test() -> None:
        world.engine.start()
        await loop.until(lambda: world.runner.begun)
        asked = asyncio.create_task(world.engine.first_cycle(1000))
        await world.engine.stop()
        await asked
        assert asyncio.get_running_loop().time() < 1
        assert world.runner.closed
        assert not world.engine.running
        assert world.engine.status()["nextRunAt"] is None
        assert await world.engine.run_once() == CycleReport(error=STOPPED, skipped=True)

    world.play(test())


def test_stopping_is_bounded_also_when_nothing_listens() -> None:
    world = World(HANGS)
    world.runner.deaf = True

    async def hangs() -> None:
        await asyncio.sleep(1000)

    world.runner.close = hangs  # type: ignore[method-assign]

    async def test() -> None:
        once = asyncio.create_task(world.engine.run_once())
        await loop.until(lambda: world.runner.begun)
        await world.engine.stop()
        assert asyncio.get_running_loop().time() <= 2 * STOP_SECONDS
        world.runner.deaf = False
        once.cancel()
        await asyncio.wait({once})
        await asyncio.sleep(0)

    world.play(test())


def test_whoever_waits_for_a_cycle_that_is_stopped_is_told_so() -> None:
    world = World(HANGS)

    async def test() -> None:
        once = asyncio.create_task(world.engine.run_once())
        await loop.until(lambda: world.runner.begun)
        await world.engine.stop()
        assert (await once).error == STOPPED

    world.play(test())


def test_a_spent_budget_stops_the_cycles_until_tomorrow_but_not_a_persons() -> None:
    world = World(runtime={"maxCyclesPerDay": 2})

    async def test() -> None:
        world.engine.start()
        status = await world.at(100)
        # (At midnight itself a day's count begins anew.)
        assert world.runner.begun in (2, 3)
        assert status["maxCyclesPerDay"] == 2
        before = world.runner.begun
        await world.engine.run_once()
        assert world.runner.begun == before + 1

    world.play(test())


def test_the_status_counts_what_was_done_and_shows_no_secret() -> None:
    action = {"action": "create_thread", "communitySlug": "vault"}
    failed = {"action": "comment", "ok": False, "error": "no", "communitySlug": "vault"}
    dropped = {"action": "dance", "ok": False, "error": "unknown"}
    done = CycleReport(
        actions=(action,),
        results=({**action, "ok": True}, failed, dropped),
        output=f"I know {TOKEN}" + "x" * 10_000,
        usage=Usage(3, 4),
        handle="Tester",
        community={"name": "Vault", "slug": "vault"},
    )
    world = World(done, FAILS)

    async def test() -> None:
        world.engine.start()
        status = await world.at(11)
        assert status["lastError"] == "the model is away"
        assert (status["cumulativeThreadCreateCount"], status["cumulativeWrittenCommunityCount"]) == (1, 1)
        assert (status["agentHandle"], status["activeCommunitySlug"]) == ("Tester", "vault")
        assert status["llmUsageCumulative"] == {
            "llmCallCount": 1, "callsWithUsage": 1, "callsWithoutUsage": 0,
            "inputTokens": 3, "outputTokens": 4, "totalTokens": 7,
        }  # fmt: skip
        assert status["lastLlmOutput"].startswith("I know [redacted]")
        assert len(status["lastLlmOutput"]) <= MAX_OUTPUT
        assert TOKEN not in str(status)

    world.play(test())
    once = World(done)

    async def counted() -> None:
        await once.engine.run_once()
        assert once.engine.status()["lastActionCount"] == 2

    once.play(counted())
