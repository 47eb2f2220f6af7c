"""What survives: sessions, queues, retries; and how the bridge ends."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.chat_bridge import DONE, Stage
from tests.support.chat_platform import LIMITS, MemoryPlatform
from trunkline.chat import bridge as bridge_module
from trunkline.chat import control, turn
from trunkline.chat.platform import NotNow, SendFailed
from trunkline.core.events import (
    Event,
    Failed,
    SessionIdentified,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnEnded,
)
from trunkline.core.faults import ConfigError

pytestmark = pytest.mark.virtual_time

#: How an agent's turn ends that does not know its session any more.
DEAD = (Failed("agent", "No conversation found with session ID: 1"), TurnEnded("error"))


@pytest.fixture
def impatient(stage: Stage) -> Stage:
    """A bridge that soon closes a session that nobody uses."""
    stage.settings = stage.settings.replace(idle_seconds=100.0)
    return stage


async def test_a_session_goes_on_after_a_restart(stage: Stage) -> None:
    async with stage.bridge():
        await stage.exchange("one", "first")
    async with stage.bridge():
        await stage.exchange("two", "second")
        before, after = (fake.requests[0] for fake in stage.fakes)
        assert after.resumed
        assert before.session_id == after.session_id


async def test_a_session_that_nobody_uses_is_closed_and_goes_on_later(impatient: Stage) -> None:
    async with impatient.bridge() as bridge:
        await impatient.exchange("one", "first")
        first = impatient.fakes[0]
        closed = []
        for seconds in (90, 20):
            await asyncio.sleep(seconds)
            closed.append(first.closed)
        assert closed == [False, True]
        assert [each.is_over for each in bridge._conversations.values()] == [True]
        impatient.platform.says("two")
        await impatient.asked(2)
        assert impatient.agent.requests[0].resumed
        await impatient.answers("second")


async def test_a_message_that_comes_while_the_session_is_being_closed_is_answered(impatient: Stage) -> None:
    async with impatient.bridge():
        await impatient.exchange("one", "first")
        closing = asyncio.Event()

        async def slow_close() -> None:
            closing.set()
            await asyncio.sleep(0.3)

        impatient.agent.close = slow_close  # type: ignore[method-assign]
        await asyncio.wait_for(closing.wait(), 200)
        impatient.platform.says("two")
        await impatient.asked(2)
        # It is still the one conversation of this chat: nobody is answered beside it.
        impatient.platform.says("three")
        await impatient.sees("1 message is waiting")
        await impatient.answers("second")
        await impatient.asked(3)
        await impatient.answers("third")
        assert not impatient.platform.sees("Error")


async def test_a_session_that_is_gone_is_replaced_and_the_chat_is_told(stage: Stage) -> None:
    async with stage.bridge():
        await stage.exchange("one", "first")
    stage.sessions.logs.clear()
    async with stage.bridge():
        stage.platform.says("two")
        await stage.sees("This is a new session: it does not know the earlier conversation.")
        await stage.asked(2)
        assert not stage.agent.requests[0].resumed
        await stage.answers("second")


async def test_an_agent_that_forgot_its_session_gets_a_new_one_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn, "is_dead_session", lambda text: "No conversation found" in text)
    async with stage.bridge():
        await stage.exchange("one", "first")
        stage.platform.says("two")
        await stage.asked(2)
        stage.agent.say(*DEAD)
        await stage.sees("The agent no longer knows the earlier session. This is a new session")
        await stage.asked(3)
        assert [message.text for message in stage.agent.heard] == ["two"]
        assert not stage.agent.requests[0].resumed
        stage.agent.say(*DEAD)
        await stage.sees("**Error**: No conversation found")
        assert len(stage.fakes) == 2


@pytest.mark.parametrize(
    ("before", "why"),
    [
        ((TextDelta("I sent it."),), "something was said"),
        ((ToolStarted("1", "Mail"), ToolFinished("1", "Mail", "success", "ok")), "something was done"),
    ],
)
async def test_an_agent_that_has_begun_is_not_asked_again_whatever_it_says_of_its_session(
    stage: Stage, before: tuple[Event, ...], why: str
) -> None:
    async with stage.bridge():
        await stage.exchange("one", "first")
        stage.platform.says("send it")
        await stage.asked(2)
        stage.agent.say(*before, *DEAD)
        await stage.sees("**Error**: No conversation found")
        assert len(stage.fakes) == 1, why
        assert [message.text for message in stage.agent.heard] == ["one", "send it"]


@pytest.mark.parametrize(
    ("text", "is_dead"),
    [
        ("chat abc-1 does not exist", True),
        ("Unknown thread: abc-1.", True),
        ("The session `abc-1` has expired", True),
        ("chat abc-12 does not exist", False),
        ("chat xabc-1 was not found", False),
        ("the file a.txt was not found", False),
        ("abc-1: the model is overloaded", False),
    ],
)
async def test_an_agent_that_names_its_session_and_says_it_is_gone_gets_a_new_one(
    stage: Stage, text: str, is_dead: bool
) -> None:
    async with stage.bridge():
        stage.platform.says("one")
        await stage.asked()
        stage.agent.say(SessionIdentified("abc-1"))
        await stage.answers("first")
        stage.platform.says("two")
        await stage.asked(2)
        stage.agent.say(Failed("agent", text), TurnEnded("error"))
        if is_dead:
            await stage.asked(3)
            await stage.answers("anew")
            assert stage.platform.sees("The agent no longer knows the earlier session.")
        else:
            await stage.sees("**Error**")
        assert len(stage.fakes) == 1 + is_dead


async def test_a_failure_that_comes_back_ends_with_what_may_help(stage: Stage) -> None:
    async with stage.bridge():
        for number, text in enumerate(("Exit 1 after 3 s.", "Exit 1 after 4 s.", "Other.", "Exit 1 after 3 s."), 1):
            stage.platform.says("go")
            await stage.asked(number)
            stage.agent.say(Failed("agent", text), TurnEnded("error"))
            await stage.shows(number)
        assert ["`/new` starts a new session" in text for text in stage.platform.shown()] == [
            False, True, False, False,
        ]  # fmt: skip


async def test_another_failure_does_not_cost_the_session(stage: Stage) -> None:
    async with stage.bridge():
        await stage.exchange("one", "first")
        stage.platform.says("two")
        await stage.asked(2)
        stage.agent.say(Failed("timeout", "It took too long."), TurnEnded("error"))
        await stage.sees("**Error**: It took too long.")
        stage.platform.says("three")
        await stage.asked(3)
        assert len(stage.fakes) == 1


async def test_what_waited_is_answered_after_the_restart_and_what_ran_is_told(stage: Stage) -> None:
    async with stage.bridge():
        await stage.half_answered("one", "two", "three")
    assert stage.platform.sees("half\n\n(stopped: the bridge was stopped; `/retry 1` asks again)")
    async with stage.bridge():
        await stage.asked(2)
        await stage.answers("second")
        await stage.asked(3)
        await stage.answers("third")
        stage.platform.says("/retry")
        await stage.sees("There is nothing to retry.")
        stage.platform.says("/retry 1")
        await stage.asked(4)
        assert [message.text for fake in stage.fakes for message in fake.heard] == ["one", "two", "three", "one"]


async def test_a_turn_that_a_crash_cut_off_is_told_once_and_never_run_again_unasked(stage: Stage) -> None:
    bridge = await stage.started()
    serving = asyncio.ensure_future(bridge.serve())
    stage.platform.says("one " * 50)
    await stage.asked()
    stage.platform.says("/status")
    await stage.sees("state: answering")
    await stage.vanishes(bridge, serving)
    for _ in range(2):
        async with stage.bridge():
            await stage.sees("The bridge was interrupted before this was answered: `one one")
    told = [text for text in stage.platform.shown() if "interrupted" in text]
    assert len(told) == 1
    assert sum(len(fake.heard) for fake in stage.fakes) == 1
    async with stage.bridge():
        stage.platform.presses("Ask again")
        await stage.asked(2)
        await stage.answers("at last")


async def test_the_end_of_the_bridge_is_bounded_although_the_agent_is_deaf(stage: Stage) -> None:
    async with stage.bridge():
        stage.platform.says("one")
        await stage.asked()
        stage.agent.obedient = False
        began = asyncio.get_running_loop().time()
    assert asyncio.get_running_loop().time() - began < 15
    assert stage.platform.sees("(stopped: the bridge was stopped")
    assert stage.platform.closed


async def test_a_platform_that_is_away_does_not_keep_the_bridge_from_ending(stage: Stage) -> None:
    async with stage.bridge():
        stage.platform.says("one")
        await stage.asked()
        stage.platform.faults.extend(NotNow("away") for _ in range(100))
        stage.agent.say(TextDelta("kept"), DONE)
        await asyncio.sleep(1)
    assert stage.platform.shown() == []
    stage.platform.faults.clear()
    async with stage.bridge():
        await stage.sees("kept")
    assert stage.platform.shown() == ["kept"]


async def test_what_was_not_delivered_is_named_in_the_status(tmp_path: Path) -> None:
    stage = Stage(tmp_path, MemoryPlatform(LIMITS))
    async with stage.bridge():
        stage.platform.faults.append(SendFailed("no"))
        stage.platform.says("/help")
        await asyncio.sleep(1)
        stage.platform.says("/status")
        await stage.sees("undelivered messages: 1")


async def test_two_bridges_of_one_platform_do_not_share_a_store(stage: Stage) -> None:
    async with stage.bridge():
        first = stage.store
        with pytest.raises(ConfigError, match="Another bridge serves"):
            await stage.started()
        assert stage.store is not None
        stage.store.close()
        stage.store = first


async def test_a_bridge_that_could_not_start_can_be_closed(stage: Stage) -> None:
    async def refused() -> None:
        raise ConfigError("The token is wrong.")

    stage.platform.open = refused  # type: ignore[method-assign]
    with pytest.raises(ConfigError, match="token is wrong"):
        await stage.started()
    assert stage.made is not None
    await stage.made.close()
    assert stage.store is not None
    stage.store.close()
    assert stage.platform.closed


async def test_a_defect_of_ours_costs_one_message_and_not_the_bridge(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge_module, "parse", lambda text: 1 / 0 if text == "odd" else None)
    async with stage.bridge():
        stage.platform.says("odd")
        await stage.exchange("hello", "hi")


async def test_a_command_that_fails_says_so(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> str:
        raise RuntimeError("a defect")

    monkeypatch.setattr(control.Control, "perform", broken)
    async with stage.bridge():
        stage.platform.says("/help")
        await stage.sees("the bridge could not do this; its log says why")
        await stage.exchange("hello", "hi")
