"""What people tell the bridge itself: `/stop`, `/new` and the others."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.chat_bridge import Stage
from trunkline.chat.platform import File
from trunkline.core.events import (
    Failed,
    SessionIdentified,
    TextDelta,
    TurnEnded,
)

pytestmark = pytest.mark.virtual_time


async def test_stop_ends_the_answer_drops_the_queue_and_the_session_lives_on(stage: Stage) -> None:
    async with stage.bridge():
        for text in ("one", "two", "three"):
            stage.platform.says(text)
        await stage.asked()
        stage.agent.say(TextDelta("half"))
        await stage.sees("half")
        await stage.sees("2 messages are waiting")
        stage.platform.says("/stop")
        await stage.sees("2 waiting messages were dropped.")
        await stage.sees("half\n\n(stopped)")
        assert not stage.platform.sees("Stopped")
        stage.platform.says("four")
        await stage.asked(2)
        await stage.answers("ok")
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
        stage.platform.says("look", files=(File("image", "r"),))
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
        stage.platform.says("two")
        await stage.asked(2)
        await stage.answers("fresh")
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


async def test_people_change_between_the_agents_that_are_configured(tmp_path: Path) -> None:
    stage = Stage(tmp_path, agents={"fake": "fake", "other": "fake"})
    async with stage.bridge():
        stage.platform.says("/agent")
        await stage.sees("- `fake` (answers here)\n- `other`")
        stage.platform.says("/agent nobody")
        await stage.sees("There is no agent `nobody`")
        stage.platform.says("one")
        await stage.asked()
        stage.platform.says("/agent other")
        await stage.sees("An answer is in progress")
        await stage.answers("ok")
        stage.platform.says("/agent other")
        await stage.sees("`other` answers from now on, in a new session.")
        stage.platform.says("two")
        await stage.asked(2)
        await stage.answers("I am another")
    async with stage.bridge():
        stage.platform.says("three")
        await stage.asked(3)
        assert [fake.spec for fake in stage.fakes] == ["fake", "fake", "fake"]
        assert stage.fakes[2].requests[0].resumed


async def test_an_agent_that_is_not_configured_any_more_gives_way(tmp_path: Path) -> None:
    stage = Stage(tmp_path, agents={"fake": "fake", "other": "fake"})
    async with stage.bridge():
        stage.platform.says("/agent other")
        stage.platform.says("one")
        await stage.asked()
        await stage.answers("ok")
    stage.settings = stage.settings.replace(agents={"fake": "fake"})
    async with stage.bridge():
        stage.platform.says("two")
        await stage.sees("The agent here was `other`. From now on `fake` answers, in a new session.")
        await stage.asked(2)
        assert not stage.agent.requests[0].resumed


async def test_an_owner_who_insists_on_an_agent_gets_it_until_somebody_chooses_another(tmp_path: Path) -> None:
    stage = Stage(tmp_path, agents={"fake": "fake", "other": "fake"}, idle_seconds=100.0)
    async with stage.bridge():
        stage.platform.says("one")
        await stage.asked()
        await stage.answers("ok")
    stage.settings = stage.settings.replace(agent="other", insist=True)
    async with stage.bridge():
        stage.platform.says("two")
        await stage.sees("From now on `other` answers, in a new session.")
        await stage.asked(2)
        await stage.answers("I answer")
        stage.platform.says("/agent fake")
        await stage.sees("`fake` answers from now on")
        await asyncio.sleep(200)
        stage.platform.says("three")
        await stage.asked(3)
        assert [fake.spec for fake in stage.fakes] == ["fake", "fake", "fake"]


async def test_commands_of_the_agents_own_reach_it(stage: Stage) -> None:
    async with stage.bridge():
        stage.platform.says("/compact now")
        await stage.asked()
        await stage.answers("ok")
        stage.platform.says("//status")
        await stage.asked(2)
        assert [message.text for message in stage.agent.heard] == ["/compact now", "/status"]
        stage.platform.says("/help")
        await stage.sees("`/retry` asks again")


async def test_retry_asks_again_what_failed_and_only_once(stage: Stage) -> None:
    async with stage.bridge():
        stage.platform.says("/retry")
        await stage.sees("There is nothing to retry.")
        stage.platform.says("one")
        await stage.asked()
        stage.agent.say(Failed("agent", "No."), TurnEnded("error"))
        await stage.sees("**Error**: No.")
        stage.platform.says("/retry")
        await stage.asked(2)
        await stage.answers("yes")
        assert [message.text for message in stage.agent.heard] == ["one", "one"]
        before = len(stage.platform.shown())
        stage.platform.says("/retry")
        await stage.passes(lambda: len(stage.platform.shown()) > before)
        assert stage.platform.last().text == "There is nothing to retry."


async def test_status_does_not_pair_an_agent_with_another_ones_session(tmp_path: Path) -> None:
    stage = Stage(tmp_path, agents={"fake": "fake", "other": "fake"})
    async with stage.bridge():
        stage.platform.says("one")
        await stage.asked()
        stage.agent.say(SessionIdentified("theirs"))
        await stage.answers("ok")
    stage.settings = stage.settings.replace(agent="other", insist=True)
    async with stage.bridge():
        stage.platform.says("/status")
        await stage.sees("agent: `other`\n- session: none yet")
        assert not stage.platform.sees("theirs")


async def test_after_a_stop_another_agent_can_be_chosen_at_once(tmp_path: Path) -> None:
    stage = Stage(tmp_path, agents={"fake": "fake", "other": "fake"})
    async with stage.bridge():
        stage.platform.says("one")
        await stage.asked()
        stage.agent.obedient = False
        stage.platform.says("/stop")
        stage.platform.says("/agent other")
        await stage.sees("`other` answers from now on")
        stage.platform.says("two")
        await stage.asked(2)
        assert [fake.spec for fake in stage.fakes] == ["fake", "fake"]
