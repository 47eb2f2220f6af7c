"""A message that was kept by a node which had lost its session reaches the session's owner, once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.exchange_world import CommandedAgent, World
from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from trunkline.core.agent import Approve
from trunkline.core.events import UserMessage
from trunkline.core.faults import StoreUnavailable
from trunkline.exchange import late_messages
from trunkline.exchange.accepting import accept
from trunkline.exchange.messages import QueuedMessage


async def test_what_was_kept_behind_the_owners_back_is_answered_and_what_it_knows_of_is_not_answered_twice(
    tmp_path: Path,
) -> None:
    agent = CommandedAgent()
    async with World(tmp_path, agent=agent).living() as life:
        live, messages = await life.open(), life.switchboard.messages
        await life.say(live, "say before", "m0")
        await life.rest(live)
        await life.say(live, "wait; say now", "m1")
        await life.say(live, "say next", "m2")
        # As a node does that cannot know that it is the owner no more.
        await messages.take(live.id, UserMessage("say late", id="m3", sender="bob"), live.session.shown)
        await late_messages.take_in(messages, live)
        await late_messages.take_in(messages, live)
        agent.gate.set()
        await life.rest(live)
        assert agent.heard == ["say before", "wait; say now", "say next", "say late"]
        assert await messages.waiting(live.id) == []


async def test_what_has_begun_and_whose_row_does_not_say_so_is_not_answered_again(tmp_path: Path) -> None:
    agent = CommandedAgent()
    async with World(tmp_path, agent=agent).living() as life:
        live, messages = await life.open(), life.switchboard.messages
        # A node that died between the log and the row.
        live.session.submit(UserMessage("say one", id="m1"))
        await life.rest(live)
        await messages.take(live.id, UserMessage("say one", id="m1"), 0)
        await late_messages.take_in(messages, live)
        await life.rest(live)
        assert agent.heard == ["say one"]


async def test_what_was_kept_behind_the_owners_back_is_answered_at_once_when_it_is_said_again(tmp_path: Path) -> None:
    agent = CommandedAgent()
    async with World(tmp_path, agent=agent).living() as life:
        live, messages = await life.open(), life.switchboard.messages
        late = UserMessage("say late", id="m1", sender="bob")
        kept = await messages.take(live.id, late, live.session.shown)
        await life.switchboard.submit(live, late)
        # The node that kept it finds out that the session is not its own, and does not accept it.
        await messages.forget(kept.number)
        await life.rest(live)
        assert agent.heard == ["say late"]
        await life.switchboard.submit(live, late)
        await life.rest(live)
        assert agent.heard == ["say late"]


async def test_what_is_not_accepted_may_be_said_again_as_if_for_the_first_time(tmp_path: Path) -> None:
    async with World(tmp_path, agent=CommandedAgent()).living() as life:
        live, messages = await life.open(), life.switchboard.messages
        kept = await messages.take(live.id, UserMessage("say one", id="m1"), 0)
        await messages.forget(kept.number)
        assert await messages.find(live.id, "m1") is None


async def test_what_begins_while_the_rows_are_read_is_not_answered_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = CommandedAgent()
    async with World(tmp_path, agent=agent).living() as life:
        live, messages = await life.open(), life.switchboard.messages
        await life.say(live, "wait", "m1")
        await life.say(live, "say two", "m2")
        waiting = messages.waiting

        async def meanwhile(session: str) -> list[QueuedMessage]:
            found = await waiting(session)
            agent.gate.set()
            await until(lambda: "say two" in agent.heard and not live.session.turn)
            return found

        monkeypatch.setattr(messages, "waiting", meanwhile)
        await late_messages.take_in(messages, live)
        await life.rest(live)
        assert agent.heard == ["wait", "say two"]


@pytest.mark.parametrize("when", ["before the rows are read", "after the rows are read"])
async def test_what_is_said_again_is_answered_once_although_whoever_had_kept_it_forgets_it_right_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    agent = CommandedAgent()
    async with World(tmp_path, agent=agent).living() as life:
        live, messages = await life.open(), life.switchboard.messages
        late = UserMessage("say late", id="m1", sender="bob")
        kept = await messages.take(live.id, late, live.session.shown)
        waiting = messages.waiting

        async def meanwhile(session: str) -> list[QueuedMessage]:
            found = await waiting(session)
            await messages.forget(kept.number)
            return found if when.startswith("after") else await waiting(session)

        monkeypatch.setattr(messages, "waiting", meanwhile)
        # Whoever hears that it was taken in does not say it once more.
        turn = await life.switchboard.submit(live, late)
        await life.rest(live)
        assert agent.heard == ["say late"]
        assert turn == 1
        assert await life.switchboard.submit(live, late) == turn
        await life.rest(live)
        assert agent.heard == ["say late"]


async def test_what_the_new_owner_has_taken_in_is_accepted_whatever_becomes_of_the_session_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = CommandedAgent()
    async with World(tmp_path, agent=agent).living() as life:
        live, messages = await life.open(), life.switchboard.messages
        take = messages.take

        async def moved(session: str, message: UserMessage, seq: int) -> QueuedMessage:
            kept = await take(session, message, seq)
            assert await messages.placed(kept.number, 7)
            await live.suspend()
            return kept

        monkeypatch.setattr(messages, "take", moved)
        assert await life.say(live, "say late", "m1") == 7
        assert [each.message.id for each in await messages.waiting(live.id)] == ["m1"]


async def test_what_another_node_may_still_forget_is_promised_by_none_that_closes_the_session(tmp_path: Path) -> None:
    async with World(tmp_path, agent=CommandedAgent()).living() as life:
        live, messages = await life.open(), life.switchboard.messages
        late = UserMessage("say late", id="m1", sender="bob")
        kept = await messages.take(live.id, late, live.session.shown)
        await live.suspend()
        with pytest.raises(StoreUnavailable) as refused:
            await accept(messages, live, late, "queue")
        assert refused.value.retryable
        # Once it has its turn, nobody forgets it: whoever has the session next answers it.
        assert await messages.placed(kept.number, 7)
        assert await accept(messages, live, late, "queue") == 7


async def test_a_session_that_is_busy_does_not_keep_the_others_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = CommandedAgent()
    async with World(tmp_path, agent=agent).living() as life:
        lives = [await life.open(id=id) for id in ("s1", "s2")]
        messages, approvals = life.switchboard.messages, life.switchboard.approvals
        for live in lives:
            await messages.take(live.id, UserMessage(f"say {live.id}", id="m1"), 0)
        async with lives[0].sending:
            with monkeypatch.context() as patched:
                # Each for as long as it takes.
                patched.setattr(late_messages, "EACH_SECONDS", PATIENCE_SECONDS)
                taking = asyncio.create_task(late_messages.take_up(messages, approvals, lives))
                await until(lambda: agent.heard == ["say s2"])
                assert not taking.done()
                taking.cancel()
                await asyncio.wait({taking})
            # And not for longer than it may.
            monkeypatch.setattr(late_messages, "EACH_SECONDS", 0)
            assert "s1" in await late_messages.take_up(messages, approvals, lives)
        monkeypatch.undo()
        await late_messages.take_up(messages, approvals, lives)
        await until(lambda: agent.heard == ["say s2", "say s1"])


async def test_people_are_told_of_a_question_once_however_often_its_row_is_looked_for(tmp_path: Path) -> None:
    world = World(tmp_path, agent=CommandedAgent())
    async with world.living() as life:
        live = await life.open()
        await life.say(live, "tool t1")
        await life.pending()
        # As when another node's rows were read right before the question's own was written.
        live.ask_again()
        await live.written()
        assert world.asked == ["t1"]
        await life.switchboard.approvals.close_all(live.id, "by a node that had lost the session")
        live.ask_again()
        await live.written()
        # Whoever looked for the first row found it closed.
        assert world.asked == ["t1", "t1"]
        live.answer("t1", Approve(), "ana")
        await life.rest(live)
