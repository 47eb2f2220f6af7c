"""A session at work: one answer for each call, and turns that are held to their time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.exchange import api_world
from tests.support import simulated
from tests.support.exchange_world import SECRET, CommandedAgent, World
from tests.support.loop import until
from trunkline.core.agent import Approve, Deny
from trunkline.core.events import Failed, ToolAnswered, ToolRequested, UserMessage
from trunkline.exchange.approvals import AlreadyDecided
from trunkline.exchange.session_opening import CANNOT_CONTINUE, CANNOT_RUN
from trunkline.exchange.settings import AgentBudget
from trunkline.store.database import Transaction


async def test_of_many_answers_exactly_one_wins_and_the_others_hear_whose(tmp_path: Path) -> None:
    agent = CommandedAgent()
    world = World(tmp_path, agent=agent)
    async with world.living() as life:
        live = await life.open()
        await life.say(live, "tool t1")
        pending = await life.pending()
        answers = [Approve() if number % 2 else Deny(f"no {number}") for number in range(20)]
        found = await asyncio.gather(
            *(live.decide(pending, answer, f"p{number}") for number, answer in enumerate(answers)),
            return_exceptions=True,
        )
        (winner,) = [number for number, each in enumerate(found) if each is None]
        losers = [each for each in found if isinstance(each, AlreadyDecided)]
        assert len(losers) == 19
        assert {(each.approval.state, each.approval.decided_by) for each in losers} == {
            ("approved" if winner % 2 else "denied", f"p{winner}")
        }
        await life.rest(live)
        answered = [item.event for item in world.log("s1") if isinstance(item.event, ToolAnswered)]
        assert answered == [ToolAnswered("t1", bool(winner % 2), f"p{winner}")]
    assert agent.ran[("s1", "t1")] == winner % 2


async def test_a_call_with_a_secret_in_it_is_answered_like_any_other_but_not_by_another_process(tmp_path: Path) -> None:
    agent = CommandedAgent()
    world = World(tmp_path, agent=agent)
    async with world.living() as life:
        live = await life.open()
        await life.say(live, "tool secret1")
        pending = await life.pending()
        assert SECRET not in str(pending)
        await live.decide(pending, Approve(), "ana")
        await life.rest(live)
        await life.say(live, "tool secret2")
        await until(lambda: len(world.asked) == 2)
    # The log does not have the secret, so nobody could run the call as it was asked about.
    async with world.living() as life:
        assert await life.switchboard.approvals.found("pending") == []
        (closed,) = await life.switchboard.approvals.found("closed")
        assert closed.call_id == "secret2"
    assert agent.ran == {("s1", "secret1"): 1}


@pytest.mark.parametrize(("continues", "reason"), [(True, CANNOT_RUN), (False, CANNOT_CONTINUE)])
async def test_a_call_that_a_killed_process_asked_about_and_the_next_cannot_run_is_closed_with_the_reason(
    tmp_path: Path, continues: bool, reason: str
) -> None:
    world = World(tmp_path, agent=CommandedAgent(continues=continues))
    database = world.simulate()
    async with world.living() as life:
        await life.say(await life.open(), "tool secret1")
        await until(lambda: world.asked)
        database.crash()
    async with world.living() as life:
        (closed,) = await life.switchboard.approvals.found("closed")
        assert (closed.call_id, closed.reason) == ("secret1", reason)


async def test_an_answer_counts_for_the_call_that_was_asked_about_and_no_other(tmp_path: Path) -> None:
    agent = CommandedAgent()
    world = World(tmp_path, agent=agent)
    async with world.living() as life:
        live = await life.open()
        await life.say(live, "tool t1")
        await life.say(live, "tool t1")
        first = await life.pending()
        with pytest.raises(AlreadyDecided):
            await live.decide(first.replace(digest="0" * 64), Approve(), "eve")
        await live.decide(first, Approve(), "ana")
        await until(lambda: len(world.asked) == 2)
        with pytest.raises(AlreadyDecided) as error:
            await live.decide(first, Approve(), "eve")
        assert error.value.approval.decided_by == "ana"
        live.session.stop()
        await life.rest(live)
        assert [each.state for each in await life.switchboard.approvals.found()] == ["approved", "closed"]
    assert agent.ran == {("s1", "t1"): 1}


async def slow_people(home: Path) -> None:
    world = World(home, AgentBudget(seconds_per_turn=10.0), agent=(agent := CommandedAgent()))
    world.simulate()
    async with world.living() as life:
        live = await life.open()
        await life.say(live, "sleep 6; tool t1; sleep 3; say done")
        await life.say(live, "sleep 6; tool t2; sleep 5; say never")
        await life.say(live, "say next")
        for number in (1, 2):
            await asyncio.sleep(1000)
            (pending,) = await life.switchboard.approvals.found("pending")
            assert pending.call_id == f"t{number}"
            await live.decide(pending, Approve(), "ana")
        await asyncio.sleep(100)
        assert world.ends("s1") == ["success", "error", "success"]
        (failed,) = [item.event for item in world.log("s1") if isinstance(item.event, Failed)]
        assert (failed.kind, failed.message) == ("budget", "The turn took longer than its budget of 10 s.")
        assert life.switchboard.directory.find("agent").healthy
        await life.say(live, "tool t3; sleep 11")
        await asyncio.sleep(1000)
    async with world.living() as life:
        # A turn that goes on in the next process has its time as well.
        (pending,) = await life.switchboard.approvals.found("pending")
        await (await life.switchboard.find("s1")).decide(pending, Approve(), "ana")
        await asyncio.sleep(100)
        assert world.ends("s1")[-1] == "error"
    assert sum(agent.ran.values()) == 3


def test_a_turns_time_passes_while_the_agent_works_and_not_while_people_think(tmp_path: Path) -> None:
    simulated.run(slow_people(tmp_path))


async def test_a_turn_is_counted_as_begun_together_with_its_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Wherever the process dies, one of the two rows tells that there is something to do.
    world = World(tmp_path, agent=CommandedAgent())
    async with world.living() as life:
        live = await life.open()
        seen: list[object] = []

        def cut_off(tx: Transaction, session: str, turn: int, message: UserMessage) -> None:
            seen.append(tx.one("SELECT begun FROM tally WHERE session = ?", (session,)))
            raise RuntimeError("cut off")

        monkeypatch.setattr("trunkline.exchange.live_session.begun", cut_off)
        await life.say(live, "wait", "m1")
        await live.written()
        assert seen == [{"begun": 1}]
        assert await life.switchboard._tallies.uncounted() == []
        assert [each.message.id for each in await life.switchboard.messages.waiting("s1")] == ["m1"]
        live.session.stop()
        await life.rest(live)


async def test_the_time_of_one_turn_does_not_end_the_next(tmp_path: Path) -> None:
    agent = CommandedAgent()
    world = World(tmp_path, agent=agent)
    async with world.living() as life:
        live = await life.open()
        await life.say(live, "wait")
        await until(lambda: agent.heard)
        # As when the end of the earlier turn is still on its way to the disk.
        live._timed = 0
        live._late()
        agent.gate.set()
        await life.rest(live)
    assert world.ends("s1") == ["success"]


async def test_a_session_in_which_a_message_is_being_taken_in_is_not_idle(tmp_path: Path) -> None:
    world = World(tmp_path, agent=CommandedAgent())
    async with world.living() as life:
        live = await life.open()
        assert live.is_idle
        async with live.sending:
            assert not live.is_idle


async def test_the_time_of_a_turn_does_not_pass_while_one_of_two_calls_waits(tmp_path: Path) -> None:
    async with api_world.world(tmp_path, budget=AgentBudget(seconds_per_turn=60.0)) as net:
        id = await net.session()
        await net.say(id)
        await until(lambda: net.fake.busy)
        live = await net.exchange.switchboard.find(id)
        assert live._clock is not None
        for call_id in ("c1", "c2"):
            net.fake.say(ToolRequested(call_id, "Bash", "exec", {"command": "ls"}, "List files"))
        await until(lambda: len(live.session.waiting) == 2)
        for call_id, runs in (("c1", False), ("c2", True)):
            live.session.answer(call_id, Approve(), "ana")
            await live.session.settled()
            assert (live._clock is not None) is runs


async def test_a_message_that_was_withdrawn_is_not_answered_after_a_restart(tmp_path: Path) -> None:
    agent = CommandedAgent()
    world = World(tmp_path, agent=agent)
    async with world.living() as life:
        live = await life.open()
        await life.say(live, "tool t1")
        await life.pending()
        kept, withdrawn = await life.say(live, "say kept"), await life.say(live, "say withdrawn", id="m")
        live.session.stop("ana", withdrawn)
        assert await life.say(live, "say withdrawn", id="m") == withdrawn
    async with world.living() as life:
        live = await life.open()
        assert live.session.latest == kept
        await live.decide(await life.pending(), Approve(), "ana")
        await life.rest(live)
    assert agent.heard == ["tool t1", "say kept"]


async def test_a_process_that_dies_before_the_row_knows_leaves_the_withdrawal_in_the_log(tmp_path: Path) -> None:
    agent = CommandedAgent()
    world = World(tmp_path, agent=agent)
    database = world.simulate()
    async with world.living() as life:
        live = await life.open()
        await life.say(live, "tool t1")
        await life.pending()
        turn = await life.say(live, "say withdrawn")
        await live.written()
        live.session.stop("ana", turn)
        live.session.flush()
        database.crash()
    async with world.living() as life:
        assert await life.switchboard.messages.waiting("s1") == []
        live = await life.open()
        live.session.stop("ana")
        await life.rest(live)
    assert agent.heard == ["tool t1"]


async def test_a_withdrawal_that_the_log_does_not_have_takes_no_message_away(tmp_path: Path) -> None:
    async with World(tmp_path, agent=CommandedAgent()).living() as life:
        live = await life.open()
        await life.say(live, "tool t1")
        await life.pending()
        turn = await life.say(live, "say kept", id="m")
        # As when another node has the session by now: nothing that is said here is kept any more.
        live.session._recorder.freeze()
        live.session.stop("ana", turn)
        await live.abandon()
        assert [each.message.id for each in await life.switchboard.messages.waiting(live.id)] == ["m"]
