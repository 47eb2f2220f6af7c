"""A program that ends when it should not: what its turn says, and how it is started again. Real processes."""

from __future__ import annotations

import asyncio
import json
import os

import pytest

from tests.support.misbehaving import argv, conversing, end, failures, has_ended, notices, said, talk
from trunkline.core import events as core
from trunkline.core.agent import AddHistory, AddMcpServer, Approve, SetMode, SetOptions
from trunkline.core.events import Event, UserMessage
from trunkline.core.faults import AgentFailed
from trunkline.core.usage import NOTHING_USED
from trunkline.wires import driven_process
from trunkline.wires.jsonstream.drive import Connection, DrivenConversation, Launched

pytestmark = pytest.mark.process


async def start(habit: str, *flags: str) -> Connection:
    return await Connection.start([*argv(habit), *flags], name="nasty")


async def approving(conversation: DrivenConversation, text: str) -> list[Event]:
    """A whole turn in which everything is approved."""
    events = []
    async for event in conversation.turn(UserMessage(text)):
        events.append(event)
        if isinstance(event, core.ToolRequested):
            await conversation.decide(event.call_id, Approve())
    return events


async def death(conversation: DrivenConversation) -> None:
    """Ask a program that answers once and ends; wait for that end, which no turn notices."""
    events = await talk(conversation, "pid")
    assert end(events).outcome == "success"
    await has_ended(int(said(events)))


async def test_a_death_in_a_turn_names_the_exit_code_and_the_last_words() -> None:
    async with conversing("dies") as conversation:
        events = await talk(conversation, "hello")
        assert said(events) == "Let me see"
        (failure,) = failures(events)
        assert "`nasty` ended in the middle of its answer: exit code 7." in failure
        assert "RuntimeError: out of luck" in failure
        assert end(events) == core.TurnEnded("unknown")


async def test_a_death_by_signal_names_the_signal() -> None:
    async with conversing("is-killed") as conversation:
        events = await talk(conversation, "hello")
        assert "signal SIGKILL" in failures(events)[0]
        assert end(events) == core.TurnEnded("unknown")


async def test_output_that_is_closed_while_the_program_lives_on_is_a_death() -> None:
    async with conversing("closes-stdout") as conversation:
        events = await talk(conversation, "hello")
        assert "closed its output" in failures(events)[0]
        assert end(events) == core.TurnEnded("unknown")


@pytest.mark.parametrize(
    "habit",
    ["dies-in-tool:edit:running", "dies-in-tool:info:running", "dies-in-tool:edit:approved", "dies-unasked:Bash"],
)
async def test_a_death_in_a_tool_leaves_the_outcome_unknown(habit: str) -> None:
    async with conversing(habit) as conversation:
        events = await approving(conversation, "hello")
        assert events[-2] == core.ToolCancelled("t1", "The program ended before this tool did")
        assert end(events) == core.TurnEnded("unknown")


async def test_after_a_death_in_a_turn_the_next_one_starts_the_program_again() -> None:
    async with conversing("dies") as conversation:
        await talk(conversation, "hello")
        events = await talk(conversation, "hello again")
        (notice,) = notices(events)
        assert "`nasty` had ended in the middle of an answer (exit code 7)" in notice
        assert "continues the same session" in notice


async def test_a_new_start_is_told_once() -> None:
    async with conversing("exits-on-stop") as conversation:
        async for event in conversation.turn(UserMessage("wait")):
            if isinstance(event, core.TextDelta):
                await conversation.cancel()
        assert len(notices(await talk(conversation, "hello"))) == 1
        assert notices(await talk(conversation, "hello again")) == []


async def test_after_a_death_between_turns_the_next_one_starts_the_program_again() -> None:
    async with conversing("dies-idle") as conversation:
        await death(conversation)
        events = await talk(conversation, "args")
        assert json.loads(said(events)) == ["--resume", "fresh"]
        (notice,) = notices(events)
        assert "had ended (exit code 9)" in notice
        assert end(events).outcome == "success"


async def test_a_death_that_the_loop_had_no_time_to_see_is_noticed_too() -> None:
    async with conversing("dies-idle") as conversation:
        pid = int(said(await talk(conversation, "pid")))
        # Blocks the loop, and leaves the process to be reaped by its owner.
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222
        events = await talk(conversation, "hello")
        assert said(events) == "hello"
        assert "had ended (exit code 9)" in notices(events)[0]


async def test_a_program_that_cannot_resume_is_told_everything_again() -> None:
    async def forgetful(session_id: str | None) -> Launched:
        return Launched(await start("dies-idle"))

    async with conversing("dies-idle", relaunch=forgetful) as conversation:
        await conversation.configure(AddHistory("We spoke of cats."))
        await conversation.configure(AddMcpServer("files", "stdio", "ls"))
        await conversation.configure(SetOptions({"model": "small"}))
        await conversation.configure(SetOptions({"model": "big"}))
        await conversation.configure(SetMode("yolo"))
        await death(conversation)
        events = await talk(conversation, "commands")
        assert "does not remember what was said before" in notices(events)[0]
        server, options, mode, history, _ = json.loads(said(events))
        assert server["name"] == "files"
        assert options == {"type": "set_config", "model": "big"}
        assert mode == {"type": "set_mode", "mode": "yolo"}
        assert history == {"type": "init_history", "text": "We spoke of cats."}


async def test_a_program_that_resumes_is_not_told_its_history_twice() -> None:
    async with conversing("dies-idle") as conversation:
        await conversation.configure(AddHistory("We spoke of cats."))
        await conversation.configure(SetOptions({"model": "big"}))
        await death(conversation)
        commands = json.loads(said(await talk(conversation, "commands")))
        assert [command["type"] for command in commands] == ["set_config", "message"]


async def test_a_change_after_the_end_of_a_program_reaches_the_next() -> None:
    async with conversing("dies-idle") as conversation:
        await death(conversation)
        await conversation.configure(SetOptions({"model": "big"}))
        commands = json.loads(said(await talk(conversation, "commands")))
        assert [command["type"] for command in commands] == ["set_config", "message"]


async def test_without_a_way_to_start_it_again_the_next_turn_fails() -> None:
    async with conversing("dies-idle", relaunch=None) as conversation:
        await death(conversation)
        events = await talk(conversation, "hello")
        assert "is not started again" in failures(events)[0]
        assert end(events) == core.TurnEnded("error", NOTHING_USED)


async def test_a_program_that_keeps_dying_is_started_again_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driven_process, "FIRST_REST_SECONDS", 0.001)
    async with conversing("dies") as conversation:
        for number in range(5):
            events = await talk(conversation, "hello")
            assert ("exit code 7" in failures(events)[0], end(events).outcome) == (True, "unknown")
            assert any("it was started again" in text for text in notices(events)) is (number > 0)


async def test_one_that_has_died_twice_in_a_row_is_waited_for_and_the_wait_can_be_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(driven_process, "FIRST_REST_SECONDS", 600.0)
    starts = []

    async def counted(session_id: str | None) -> Launched:
        starts.append(session_id)
        return Launched(await start("dies"))

    async with conversing("dies", relaunch=counted, rest=1000.0) as conversation:
        for _ in range(2):
            assert "exit code 7" in failures(await talk(conversation, "hello"))[0]
        events = []
        async for event in conversation.turn(UserMessage("hello")):
            events.append(event)
            await conversation.cancel()
        assert notices(events) == ["The program has died 2 times in a row; it is started again in 600 s."]
        assert (end(events).outcome, len(starts)) == ("cancelled", 1)


async def test_one_that_lived_for_long_before_it_died_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driven_process, "FIRST_REST_SECONDS", 600.0)
    monkeypatch.setattr(driven_process, "REST_SECONDS", 0.0)
    async with conversing("dies", rest=1000.0) as conversation:
        for _ in range(4):
            assert "exit code 7" in failures(await talk(conversation, "hello"))[0]


async def test_deaths_with_good_turns_between_them_are_no_series() -> None:
    async with conversing("dies-idle", rest=1000) as conversation:
        for _ in range(5):
            await death(conversation)


async def test_stops_that_had_to_be_enforced_are_no_deaths() -> None:
    async with conversing("exits-on-stop", rest=1000) as conversation:
        for _ in range(4):
            turn = conversation.turn(UserMessage("wait"))
            async for event in turn:
                if isinstance(event, core.TextDelta):
                    await conversation.cancel()
                assert not isinstance(event, core.Failed)


async def test_a_start_that_fails_fails_its_turn_and_the_next_one_tries_again() -> None:
    habits = iter(["quits", "none"])

    async def clumsy(session_id: str | None) -> Launched:
        return Launched(await start(next(habits)))

    async with conversing("dies-idle", relaunch=clumsy) as conversation:
        await death(conversation)
        events = await talk(conversation, "hello")
        assert "ended before it was ready: exit code 3" in failures(events)[0]
        assert end(events) == core.TurnEnded("error", NOTHING_USED)
        assert said(await talk(conversation, "hello")) == "hello"


@pytest.mark.parametrize("way", ["cancel", "close", "leave"])
async def test_a_turn_that_waits_for_a_start_can_be_ended_and_leaves_nothing(way: str) -> None:
    starting = asyncio.Event()

    async def endless(session_id: str | None) -> Launched:
        starting.set()
        return Launched(await start("mute"))

    async with conversing("dies-idle", relaunch=endless) as conversation:
        await death(conversation)
        pulling = asyncio.create_task(talk(conversation, "hello"))
        await starting.wait()
        if way == "leave":
            pulling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await pulling
            return
        await getattr(conversation, way)()
        assert end(await pulling) == core.TurnEnded("cancelled", NOTHING_USED)


async def test_a_conversation_that_is_closed_while_a_start_succeeds_keeps_no_process() -> None:
    pids = []
    closed = asyncio.Event()

    async def late(session_id: str | None) -> Launched:
        connection = await start("none")
        pids.append(connection.pid)
        closing = asyncio.ensure_future(conversation.close())
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            # The wait for the start was ended by the close; the start itself has already succeeded.
            closed.set()
        return Launched(connection)

    async with conversing("dies-idle", relaunch=late) as conversation:
        await death(conversation)
        await talk(conversation, "hello")
        for pid in pids:
            await has_ended(pid)
        assert closed.is_set()


async def test_context_that_a_program_does_not_take_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline.base.process_streams.WRITE_LIMIT", 100_000)
    connection = await start("never-reads")
    with pytest.raises(AgentFailed, match="does not read"):
        DrivenConversation(Launched(connection), context=["x" * 90_000] * 3)
    await has_ended(connection.pid)
