"""Whose session a conversation goes on with: this agent's, in this workspace, as long as the agent can read it."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from tests.support.chat_bridge import DONE, BridgeFake, Stage
from tests.support.chat_platform import LIMITS, MemoryPlatform
from tests.support.fake_agent import FakeAgent
from trunkline.core.agent import OpenRequest
from trunkline.core.events import TextDelta
from trunkline.core.faults import AgentFailed, ConfigError

pytestmark = pytest.mark.virtual_time

ANEW = "This is a new session: it does not know the earlier conversation."


async def talk(stage: Stage, number: int) -> None:
    """One message, and its answer."""
    stage.platform.says(f"message {number}")
    await stage.asked(number)
    await stage.answers(f"answer {number}")


async def test_a_session_knows_who_answers_in_it(stage: Stage) -> None:
    async with stage.bridge():
        await talk(stage, 1)
    assert list(stage.sessions.agents.values()) == [stage.agent.name]


async def test_a_name_that_stands_for_another_agent_begins_a_new_session(stage: Stage) -> None:
    async with stage.bridge():
        await talk(stage, 1)
    stage.settings = stage.settings.replace(agents={"fake": "another"})
    async with stage.bridge():
        stage.platform.says("/status")
        await stage.sees("session: none yet")
        await talk(stage, 2)
    assert stage.platform.sees(f"The agent `fake` has changed. {ANEW}")
    assert not stage.agent.requests[0].resumed
    async with stage.bridge():
        await talk(stage, 3)
    assert stage.agent.requests[0].resumed


async def test_another_workspace_begins_a_new_session(stage: Stage, tmp_path: Path) -> None:
    async with stage.bridge():
        await talk(stage, 1)
    stage.settings = stage.settings.replace(workspace=str(tmp_path.parent))
    async with stage.bridge():
        await talk(stage, 2)
    assert stage.platform.sees(f"The workspace has changed. {ANEW}")
    assert not stage.agent.requests[0].resumed


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no such record"), "The agent cannot read the earlier session."),
        (AgentFailed("What is this?"), "What is this?"),
    ],
)
async def test_a_session_that_the_agent_cannot_read_is_replaced(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    open_fake = BridgeFake.open

    async def particular(fake: BridgeFake, request: OpenRequest) -> FakeAgent:
        if request.resumed:
            raise error
        return await open_fake(fake, request)

    monkeypatch.setattr(BridgeFake, "open", particular)
    async with stage.bridge():
        await talk(stage, 1)
    async with stage.bridge():
        await talk(stage, 2)
    assert stage.platform.sees(f"{said} {ANEW}")


async def test_a_session_stays_if_the_agent_cannot_be_had_or_another_process_has_it(stage: Stage) -> None:
    async with stage.bridge():
        await talk(stage, 1)
    async with stage.bridge():
        stage.refuses = ConfigError("There is no such program.")
        stage.platform.says("hello")
        await stage.sees("**Error**: There is no such program.")
        stage.refuses = None
        (log,) = stage.sessions.logs.values()
        log.held = True
        stage.platform.says("hello")
        await stage.sees("**Error**: The session")
        log.held = False
        await talk(stage, 2)
    assert stage.agent.requests[0].resumed
    assert not stage.platform.sees(ANEW)


async def test_where_programs_read_the_chat_it_holds_answers_and_no_remarks(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stage = Stage(tmp_path, MemoryPlatform(LIMITS.replace(remarks=False)))

    with caplog.at_level(logging.WARNING):
        async with stage.bridge():
            await talk(stage, 1)
        stage.settings = stage.settings.replace(agent="other", agents={"other": "other"})
        async with stage.bridge():
            stage.platform.says("message 2")
            stage.platform.says("message 3")
            for number in (2, 3):
                await stage.asked(number)
                await stage.answers(f"answer {number}")
    assert stage.platform.shown() == ["answer 1", "answer 2", "answer 3"]
    assert caplog.messages == ["The agent here was `fake`. From now on `other` answers, in a new session."]


@pytest.mark.parametrize("history", [False, True])
async def test_where_people_do_not_see_what_they_wrote_before_the_restart_they_are_told(
    tmp_path: Path, history: bool
) -> None:
    stage = Stage(tmp_path, MemoryPlatform(LIMITS.replace(history=history)))
    async with stage.bridge():
        stage.platform.says("one")
        stage.platform.says("two")
        await stage.sees("1 message is waiting")
    async with stage.bridge():
        await stage.asked(2)
        await stage.answers("second")
        assert stage.platform.sees("From before the restart: `two`.") is not history
        await talk(stage, 3)
        assert not stage.platform.sees("`message 3`")


async def test_who_is_patient_is_told_what_waits_too(stage: Stage) -> None:
    stage.unlimited = ("memory:1",)
    async with stage.bridge():
        stage.platform.says("one")
        stage.platform.says("two")
        await stage.sees("1 message is waiting; `/stop` ends this answer and drops what waits.")
        for number in (1, 2):
            await stage.asked(number)
            stage.agent.say(TextDelta("ok"), DONE)


async def test_messages_of_somebody_who_is_not_let_in_any_more_are_not_answered_after_a_restart(stage: Stage) -> None:
    stage.allow = ("memory:1", "memory:2")
    bridge = await stage.started()
    serving = asyncio.ensure_future(bridge.serve())
    stage.platform.says("running", sender="2")
    stage.platform.says("waiting", sender="2")
    stage.platform.says("mine")
    await stage.asked()
    await stage.sees("2 messages are waiting")
    await stage.vanishes(bridge, serving)
    stage.allow = ("memory:1",)
    async with stage.bridge():
        await stage.asked(2)
        await stage.answers("yours")
        assert [message.text for message in stage.agent.heard] == ["mine"]
        assert not stage.platform.sees("interrupted")
        assert stage.store is not None
        assert stage.store.waiting("memory") == stage.store.interrupted("memory") == []
