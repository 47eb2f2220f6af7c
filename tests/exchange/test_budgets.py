"""What agents use is counted once, also over restarts, and held against what they may use."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from tests.support.exchange_world import CommandedAgent, World
from tests.support.loop import until
from trunkline.agents.coder.settings import CoderSettings
from trunkline.core.events import Failed
from trunkline.core.faults import BudgetExceeded
from trunkline.exchange import tally
from trunkline.exchange.forking import fork
from trunkline.exchange.settings import AgentBudget
from trunkline.exchange.tally import Count, Tallies, Tally, UncountedTurn
from trunkline.models.prices import Price
from trunkline.models.providers import ModelSettings
from trunkline.store.database import DatabaseGone
from trunkline.store.files import FileStore

HOUR_MS = 3_600_000


async def test_turns_of_an_hour_are_counted_when_they_are_taken_also_by_many_at_once(tmp_path: Path) -> None:
    world = World(tmp_path, AgentBudget(turns_per_hour=3), agent=CommandedAgent())
    async with world.living() as life:
        lives = [await life.open(f"s{number}") for number in range(8)]
        found = await asyncio.gather(*(life.say(live, "say hello") for live in lives), return_exceptions=True)
        refused = [each for each in found if isinstance(each, BudgetExceeded)]
        assert len(refused) == 5
        assert [each.retry_after for each in refused] == [3600.0] * 5
        for live in lives:
            await life.rest(live)
    world.now += HOUR_MS // 2
    async with world.living() as life:
        told = r"budget of 3 turns an hour is spent\. There is more in 30 minutes\."
        with pytest.raises(BudgetExceeded, match=told) as error:
            await life.say(await life.open("s0"), "say more")
        assert error.value.retry_after == 1800.0
        world.now += HOUR_MS // 2
        await life.say(await life.open("s0"), "say more")


async def test_tokens_of_a_day_end_a_turn_before_its_next_model_call_and_count_over_a_restart(tmp_path: Path) -> None:
    world = World(tmp_path, AgentBudget(tokens_per_day=1000), agent=CommandedAgent())
    async with world.living() as life:
        live = await life.open()
        await life.say(live, "spend 600; spend 600; spend 600; say never")
        await life.rest(live)
        assert [item.event.kind for item in world.log("s1") if isinstance(item.event, Failed)] == ["budget"]
        assert world.ends("s1") == ["error"]
        (used,) = await life.budgets.usage("agent")
        assert (used["turns"], used["input_tokens"], used["usd"]) == (1, 1200, 0.0012)
        assert used["budget"] == {"tokens_per_day": {"used": 1200, "limit": 1000}}
        assert "budget" not in (await life.budgets.usage("day"))[0]
    async with world.living() as life:
        with pytest.raises(BudgetExceeded, match=r"1,000 tokens a day is spent\. There is more in 12 hours\.") as error:
            await life.say(await life.open(), "say hello")
        assert error.value.retry_after == 12 * 3600
        world.now += 12 * HOUR_MS
        await life.say(await life.open(), "say hello")


async def test_what_a_turn_has_spent_is_kept_when_its_process_dies_in_it(tmp_path: Path) -> None:
    world = World(tmp_path, AgentBudget(usd_per_day=0.001), agent=CommandedAgent())
    async with world.living() as life:
        live = await life.open()
        await life.say(live, "spend 2000; tool t1")
        await until(lambda: world.asked)
        await live.written()
        # Nothing of the end of the turn is written: it goes on in the next process.
    async with world.living() as life:
        (used,) = await life.budgets.usage("person")
        assert (used["person"], used["turns"], used["input_tokens"]) == ("ana", 0, 2000)
        with pytest.raises(BudgetExceeded, match=r"0\.001 US dollars"):
            await life.say(await life.open("s2"), "say hello")


async def test_what_an_agent_counted_itself_is_not_counted_again_at_the_end(tmp_path: Path) -> None:
    world = World(tmp_path, agent=CommandedAgent())
    async with world.living() as life:
        live = await life.open()
        for _ in range(20):
            await life.say(live, "spend 10; spend 5")
        await life.rest(live)
        (used,) = await life.budgets.usage("model")
        assert (used["model"], used["turns"], used["input_tokens"]) == ("agent-1", 20, 300)


async def test_the_users_own_price_of_a_model_goes_before_any_other(tmp_path: Path) -> None:
    agent = CommandedAgent()
    agent.settings = CoderSettings(ModelSettings("mock"), "", prices={"agent-1": Price(50.0, 0.0, 0.0, 0.0)})
    world = World(tmp_path, AgentBudget(usd_per_day=0.001), agent=agent)
    async with world.living() as life:
        live = await life.open()
        await life.say(live, "spend 100")
        await life.rest(live)
        (used,) = await life.budgets.usage("agent")
        assert used["usd"] == 0.005
        with pytest.raises(BudgetExceeded, match=r"0\.001 US dollars"):
            await life.say(live, "say hello")


async def test_what_the_log_has_of_a_turn_is_counted_once_although_the_process_died_before_its_rows(
    tmp_path: Path,
) -> None:
    agent = CommandedAgent()
    world = World(tmp_path, AgentBudget(tokens_per_day=100), agent=agent)
    database = world.simulate()
    async with world.living() as life:
        live = await life.open()
        await life.say(live, "spend 20; wait; spend 90")
        await until(lambda: live.session.state.turns)
        await live.written()
        database.crash()
        agent.gate.set()
        await until(lambda: world.ends("s1"))
    for _ in range(2):
        async with world.living() as life:
            (used,) = await life.budgets.usage("person")
            assert (used["person"], used["turns"], used["input_tokens"]) == ("ana", 1, 110)
            with pytest.raises(BudgetExceeded):
                await life.say(await life.open(), "say hello")


async def test_a_turn_that_its_process_did_not_end_is_counted_when_the_next_one_ends_it(tmp_path: Path) -> None:
    world = World(tmp_path, agent=CommandedAgent(continues=False))
    database = world.simulate()
    async with world.living() as life:
        live = await life.open()
        await life.say(live, "spend 20; tool t1")
        await until(lambda: world.asked)
        await live.written()
        database.crash()
    for _ in range(2):
        async with world.living() as life:
            await life.open()
            (used,) = await life.budgets.usage("person")
            assert (used["turns"], used["input_tokens"]) == (1, 20)


async def test_turns_that_a_fork_begins_with_are_not_counted_again(tmp_path: Path) -> None:
    world = World(tmp_path, agent=CommandedAgent())
    async with world.living() as life:
        live = await life.open()
        await life.say(live, "spend 20")
        await life.rest(live)
        made = await fork(life.switchboard, "s1", None, "ana")
        other = await life.switchboard.find(made.id)
        await life.say(other, "spend 5")
        await life.rest(other)
        (used,) = await life.budgets.usage("person")
        assert (used["turns"], used["input_tokens"]) == (2, 25)


async def test_new_limits_that_cannot_be_taken_up_whole_change_nothing(tmp_path: Path) -> None:
    world = World(tmp_path, AgentBudget(tokens_per_day=1000), agent=CommandedAgent())
    async with world.living() as life:
        live = await life.open()
        await life.say(live, "spend 600")
        await life.rest(live)
        new = {"agent": AgentBudget(tokens_per_day=1), "other": AgentBudget(tokens_per_day=1)}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(life.database, "read", _gone)
            with pytest.raises(DatabaseGone):
                await life.budgets.open(new)
        live.meter.check()
        await life.budgets.open(new)
        with pytest.raises(BudgetExceeded):
            live.meter.check()


async def _gone(work: object) -> None:
    raise DatabaseGone("the disk is full")


async def test_a_turn_in_progress_is_not_counted_by_who_catches_up_though_it_ends_meanwhile(tmp_path: Path) -> None:
    world = World(tmp_path, agent=CommandedAgent())
    async with world.living() as life:
        live = await life.open()
        for text in ("say one", "say two"):
            await life.say(live, text)
        await life.rest(live)
        await life.database.write(lambda tx: tx.execute("UPDATE tally SET ended = 0"))
        counted: list[int] = []

        async def count(so_far: Tally, ends: Sequence[UncountedTurn]) -> None:
            counted.extend(end.turn for end in ends)

        tallies = Tallies(life.database, FileStore(world.sessions))
        await tallies.catch_up("s1", count, but=2)
        assert counted == [1]
        await life.database.write(lambda tx: tally.ended(tx, "s1", 1))
        await tallies.catch_up("s1", count)
        assert counted == [1, 2]
        # One that is counted late does not have a later one counted again.
        for turn in (2, 1):
            await life.database.write(partial(tally.ended, session="s1", turn=turn))
        await tallies.catch_up("s1", count)
        assert counted == [1, 2]


@pytest.mark.parametrize("budget", [AgentBudget(tokens_per_day=1000), AgentBudget(usd_per_day=0.001)])
async def test_a_budget_that_is_used_up_to_the_last_is_spent(tmp_path: Path, budget: AgentBudget) -> None:
    world = World(tmp_path, budget, agent=CommandedAgent())
    async with world.living() as life:
        live = await life.open()
        await life.say(live, "spend 999")
        await life.rest(live)
        await life.say(live, "spend 1")
        await life.rest(live)
        assert world.ends("s1") == ["success"] * 2
        with pytest.raises(BudgetExceeded):
            await life.say(live, "say hello")


async def test_a_turn_that_goes_on_in_the_next_process_is_counted_when_it_ends_there_and_not_by_who_catches_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, agent=CommandedAgent())
    async with world.living() as life:
        await life.say(await life.open(), "tool t1")
        await life.pending()
    left_out: list[int] = []

    async def noted(tallies: Tallies, session: str, count: Count, turns: int | None = None, *, but: int = 0) -> None:
        left_out.append(but)

    monkeypatch.setattr(Tallies, "catch_up", noted)
    async with world.living() as life:
        await life.switchboard.find("s1")
    assert left_out[-1] == 1
