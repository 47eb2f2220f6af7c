"""What people tell the bridge itself: `/stop`, `/new` and the others."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.chat_bridge import Stage
from trunkline.chat.platform import InboundFile
from trunkline.core.events import (
    Failed,
    SessionIdentified,
    TurnEnded,
)

pytestmark = pytest.mark.virtual_time


@pytest.fixture
def choosing(stage: Stage) -> Stage:
    """A bridge where people can choose between two agents."""
    stage.settings = stage.settings.replace(agents={"fake": "fake", "other": "fake"})
    return stage


async def test_stop_ends_the_answer_drops_the_queue_and_the_session_lives_on(stage: Stage) -> None:
    async with stage.bridge():
        await stage.half_answered("one", "two", "three")
        stage.platform.says("/stop")
        await stage.sees("2 waiting messages were dropped.")
        await stage.sees("half\n\n(stopped)")
        assert not stage.platform.sees("Stopped")
        await stage.exchange("four", "ok")
        assert [message.text for message in stage.agent.heard] == ["one", "four"]
        assert len(stage.fakes) == 1


async def test_stop_says_when_there_is_nothing_to_stop(stage: Stage) -> None:
    async with stage.bridge():
        stage.platform.says("/stop")
        await stage.sees("Nothing is being answered.")


async def test_stop_is_obeyed_while_files_are_fetched(stage: Stage) -> None:
    stage.platform.files["r"] = b"x"
    async with stage.bridge():
        stage.platform.delay = 1000.0
        stage.platform.says("look", files=(InboundFile("image", "r"),))
        await asyncio.sleep(1)
        stage.platform.delay = 0.0
        stage.platform.says("/stop")
        await stage.sees("(stopped)")
        assert not stage.fakes


async def test_new_begins_a_fresh_session_also_in_the_middle_of_an_answer(stage: Stage) -> None:
    async with stage.bridge():
        stage.platform.says("one")
        await stage.asked()
        stage.platform.says("/new")
        await stage.sees("A new session begins with your next message.")
        await stage.exchange("two", "fresh")
        first, second = stage.fakes
        assert first.closed
        assert not second.requests[0].resumed
        assert first.requests[0].session_id != second.requests[0].session_id


async def test_status_tells_what_is_going_on(stage: Stage) -> None:
    async with stage.bridge():
        stage.platform.says("/status")
        await stage.sees("session: none yet")
        stage.platform.says("one")
        await stage.asked()
        stage.agent.say(SessionIdentified("theirs"))
        stage.platform.says("two")
        stage.platform.says("/status")
        await stage.sees("state: answering")
        status = stage.platform.last().text
        assert "agent: `fake`" in status
        assert f"session: `{stage.agent.requests[0].session_id}`" in status
        assert "waiting messages: 1" in status
        await stage.answers("ok")
        await stage.asked(2)
        await stage.answers("done")
        stage.platform.says("/status")
        await stage.sees("the agent calls it: `theirs`")


async def test_people_change_between_the_agents_that_are_configured(choosing: Stage) -> None:
    async with choosing.bridge():
        choosing.platform.says("/agent")
        await choosing.sees("- `fake` (answers here)\n- `other`")
        choosing.platform.says("/agent nobody")
        await choosing.sees("There is no agent `nobody`")
        choosing.platform.says("one")
        await choosing.asked()
        choosing.platform.says("/agent other")
        await choosing.sees("An answer is in progress")
        await choosing.answers("ok")
        choosing.platform.says("/agent other")
        await choosing.sees("`other` answers from now on, in a new session.")
        await choosing.exchange("two", "I am another")
    async with choosing.bridge():
        choosing.platform.says("three")
        await choosing.asked(3)
        assert [fake.spec for fake in choosing.fakes] == ["fake", "fake", "fake"]
        assert choosing.fakes[2].requests[0].resumed


async def test_an_agent_that_is_not_configured_any_more_gives_way(choosing: Stage) -> None:
    async with choosing.bridge():
        choosing.platform.says("/agent other")
        await choosing.exchange("one", "ok")
    choosing.settings = choosing.settings.replace(agents={"fake": "fake"})
    async with choosing.bridge():
        choosing.platform.says("two")
        await choosing.sees("The agent here was `other`. From now on `fake` answers, in a new session.")
        await choosing.asked(2)
        assert not choosing.agent.requests[0].resumed


async def test_an_owner_who_insists_on_an_agent_gets_it_until_somebody_chooses_another(choosing: Stage) -> None:
    choosing.settings = choosing.settings.replace(idle_seconds=100.0)
    async with choosing.bridge():
        await choosing.exchange("one", "ok")
    choosing.settings = choosing.settings.replace(agent="other", insist=True)
    async with choosing.bridge():
        choosing.platform.says("two")
        await choosing.sees("From now on `other` answers, in a new session.")
        await choosing.asked(2)
        await choosing.answers("I answer")
        choosing.platform.says("/agent fake")
        await choosing.sees("`fake` answers from now on")
        await asyncio.sleep(200)
        choosing.platform.says("three")
        await choosing.asked(3)
        assert [fake.spec for fake in choosing.fakes] == ["fake", "fake", "fake"]


async def test_commands_of_the_agents_own_reach_it(stage: Stage) -> None:
    async with stage.bridge():
        await stage.exchange("/compact now", "ok")
        stage.platform.says("//status")
        await stage.asked(2)
        assert [message.text for message in stage.agent.heard] == ["/compact now", "/status"]
        stage.platform.says("/help")
        await stage.sees("`/retry` repeats the last message")


async def test_retry_asks_again_what_failed_and_only_once(stage: Stage) -> None:
    async with stage.bridge():
        stage.platform.says("/retry")
        await stage.sees("There is nothing to retry.")
        stage.platform.says("one")
        await stage.asked()
        stage.agent.say(Failed("agent", "No."), TurnEnded("error"))
        await stage.sees("**Error**: No.")
        await stage.exchange("/retry", "yes")
        assert [message.text for message in stage.agent.heard] == ["one", "one"]
        before = len(stage.platform.shown())
        stage.platform.says("/retry")
        await stage.passes(lambda: len(stage.platform.shown()) > before)
        assert stage.platform.last().text == "There is nothing to retry."


async def test_status_does_not_pair_an_agent_with_another_ones_session(choosing: Stage) -> None:
    async with choosing.bridge():
        choosing.platform.says("one")
        await choosing.asked()
        choosing.agent.say(SessionIdentified("theirs"))
        await choosing.answers("ok")
    choosing.settings = choosing.settings.replace(agent="other", insist=True)
    async with choosing.bridge():
        choosing.platform.says("/status")
        await choosing.sees("agent: `other`\n- session: none yet")
        assert not choosing.platform.sees("theirs")


async def test_after_a_stop_another_agent_can_be_chosen_at_once(choosing: Stage) -> None:
    async with choosing.bridge():
        choosing.platform.says("one")
        await choosing.asked()
        choosing.agent.obedient = False
        choosing.platform.says("/stop")
        choosing.platform.says("/agent other")
        await choosing.sees("`other` answers from now on")
        choosing.platform.says("two")
        await choosing.asked(2)
        assert [fake.spec for fake in choosing.fakes] == ["fake", "fake"]
