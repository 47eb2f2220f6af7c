"""A conversation with a program, however it behaves in its turns. Each test has a real process on the other side."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from typing import cast

import pytest

from tests.support.misbehaving import conversing, end, failures, has_ended, notices, said, talk
from tests.support.patience import PATIENCE_SECONDS
from trunkline.core import events as core
from trunkline.core.agent import AddHistory, AddMcpServer, Approve, Change, Decision, Deny, SetMode, SetOptions
from trunkline.core.events import Event, UserMessage
from trunkline.core.faults import AgentBusy, ConfigError, Unsupported
from trunkline.core.usage import NOTHING_USED, Usage
from trunkline.wires.jsonstream.drive import LATE_STOP_SECONDS, DrivenConversation, Timing

pytestmark = pytest.mark.process


def begin(conversation: DrivenConversation, text: str) -> AsyncGenerator[Event, None]:
    """A turn to be pulled, and left, by hand."""
    return cast("AsyncGenerator[Event, None]", conversation.turn(UserMessage(text)))


async def until(turn: AsyncGenerator[Event, None], kind: type[Event]) -> list[Event]:
    """What a turn says up to the first event of a kind."""
    events: list[Event] = []
    async for event in turn:
        events.append(event)
        if isinstance(event, kind):
            return events
    raise AssertionError(f"the turn ended without {kind.__name__}")


async def rest(turn: AsyncGenerator[Event, None]) -> list[Event]:
    return [event async for event in turn]


async def is_alive(conversation: DrivenConversation) -> None:
    """Whether it still answers; that it was not started again is for the caller to see."""
    events = await talk(conversation, "still there?")
    assert said(events) == "still there?"
    assert end(events).outcome == "success"


# Good programs


async def test_a_turn_is_text_and_an_end_with_its_usage() -> None:
    async with conversing("none") as conversation:
        events = await talk(conversation, "hello")
        assert events == [
            core.SessionIdentified("fresh"),
            core.TextDelta("hello"),
            core.TurnEnded("success", Usage(12, 3, 2)),
        ]
        assert conversation.session_id == "fresh"


async def test_the_session_is_identified_once() -> None:
    async with conversing("none") as conversation:
        await talk(conversation, "hello")
        assert not [event for event in await talk(conversation, "again") if isinstance(event, core.SessionIdentified)]


async def test_turns_follow_one_another_in_one_process() -> None:
    async with conversing("none") as conversation:
        assert said(await talk(conversation, "pid")) == said(await talk(conversation, "pid"))


async def test_files_are_named_to_the_program() -> None:
    async with conversing("none") as conversation:
        commands = json.loads(said(await talk(conversation, "commands", ["/tmp/a.png"])))
        assert commands[-1]["files"] == ["/tmp/a.png"]


@pytest.mark.parametrize(
    ("decision", "answer"),
    [
        (Approve(), "approved t1 once"),
        (Approve("always"), "approved t1 always"),
        (Deny("too risky"), "denied t1 too risky"),
        (Decision(), "denied t1 "),
    ],
)
async def test_a_decision_reaches_the_program(decision: Decision, answer: str) -> None:
    async with conversing("none") as conversation:
        turn = begin(conversation, "tool edit")
        asked = (await until(turn, core.ToolRequested))[-1]
        assert asked == core.ToolRequested("t1", "Write", "edit", {"file_path": "a.txt"}, "Write a.txt")
        await conversation.decide("t1", decision)
        await conversation.decide("t1", Approve())
        events = await rest(turn)
        assert said(events) == answer
        assert end(events).outcome == "success"


async def test_several_requests_are_open_at_once_and_answered_in_any_order() -> None:
    async with conversing("none") as conversation:
        turn = begin(conversation, "tools")
        await until(turn, core.ToolRequested)
        await until(turn, core.ToolRequested)
        await conversation.decide("t2", Deny("no"))
        await conversation.decide("t1", Approve())
        events = await rest(turn)
        assert core.ToolCancelled("t2", "no") in events
        assert core.ToolFinished("t1", "Tool", "success", "done") in events


async def test_a_decision_about_an_unknown_call_is_not_sent() -> None:
    async with conversing("none") as conversation:
        await conversation.decide("t1", Approve())
        turn = begin(conversation, "tool edit")
        await until(turn, core.ToolRequested)
        await conversation.decide("t7", Approve())
        await conversation.decide("t1", Approve())
        assert said(await rest(turn)) == "approved t1 once"


async def test_changes_become_commands() -> None:
    async with conversing("none") as conversation:
        await conversation.configure(AddHistory("We spoke of cats."))
        await conversation.configure(SetOptions({"model": "big", "thinking_budget": 7}))
        await conversation.configure(AddMcpServer("files", "stdio", "ls", ("-l",)))
        await conversation.configure(SetMode("auto_edit"))
        history, options, server, mode, _ = json.loads(said(await talk(conversation, "commands")))
        assert history == {"type": "init_history", "text": "We spoke of cats."}
        assert options == {"type": "set_config", "model": "big", "thinking_budget": 7}
        assert mode == {"type": "set_mode", "mode": "auto_edit"}
        assert server == {
            "type": "add_mcp_server", "name": "files", "transport": "stdio", "command": "ls", "args": ["-l"],
        }  # fmt: skip


async def test_late_history_is_told_to_the_program_too() -> None:
    async with conversing("none") as conversation:
        await talk(conversation, "hello")
        await conversation.configure(AddHistory("late"))
        commands = json.loads(said(await talk(conversation, "commands")))
        assert {"type": "init_history", "text": "late"} in commands


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (SetOptions({"flavour": "mint"}), Unsupported),
        (SetOptions({"model": 7}), ConfigError),
        (Change(), Unsupported),
    ],
)
async def test_a_change_that_the_protocol_does_not_know_is_refused(change: Change, fault: type[Exception]) -> None:
    async with conversing("none") as conversation:
        with pytest.raises(fault):
            await conversation.configure(change)


async def test_a_second_turn_at_a_time_is_refused_and_harms_nothing() -> None:
    async with conversing("none") as conversation:
        turn = begin(conversation, "tool edit")
        await until(turn, core.ToolRequested)
        with pytest.raises(AgentBusy):
            await talk(conversation, "me too")
        await conversation.decide("t1", Approve())
        assert said(await rest(turn)) == "approved t1 once"


# Stop


async def test_a_stopped_turn_ends_as_cancelled_and_the_program_lives_on() -> None:
    async with conversing("none") as conversation:
        pid = said(await talk(conversation, "pid"))
        turn = begin(conversation, "wait")
        await until(turn, core.TextDelta)
        await conversation.cancel()
        await conversation.cancel()
        assert await rest(turn) == [core.TurnEnded("cancelled", Usage(12, 3, 2))]
        assert said(await talk(conversation, "pid")) == pid


async def test_a_stop_settles_the_approvals_that_are_pending() -> None:
    async with conversing("none") as conversation:
        turn = begin(conversation, "tool edit")
        await until(turn, core.ToolRequested)
        await conversation.cancel()
        assert await rest(turn) == [
            core.ToolCancelled("t1", "Stopped by user"),
            core.TurnEnded("cancelled", Usage(12, 3, 2)),
        ]
        await is_alive(conversation)


async def test_a_stop_when_nothing_runs_is_not_even_sent() -> None:
    async with conversing("none") as conversation:
        await conversation.cancel()
        await talk(conversation, "hello")
        await conversation.cancel()
        commands = json.loads(said(await talk(conversation, "commands")))
        assert [command["type"] for command in commands] == ["message", "message"]


async def test_a_turn_that_is_stopped_before_it_begins_is_never_sent() -> None:
    async with conversing("none") as conversation:
        turn = begin(conversation, "secret")
        await conversation.cancel()
        assert end(await rest(turn)) == core.TurnEnded("cancelled", NOTHING_USED)
        assert "secret" not in said(await talk(conversation, "commands"))


async def test_what_a_program_says_after_a_stop_is_not_shown() -> None:
    async with conversing("late") as conversation:
        turn = begin(conversation, "wait")
        await until(turn, core.TextDelta)
        await conversation.cancel()
        assert await rest(turn) == [core.TurnEnded("cancelled", Usage(12, 3, 2))]
        await is_alive(conversation)


def test_the_patience_with_a_stop_is_less_than_the_second_that_hosts_are_promised() -> None:
    assert Timing().stop + LATE_STOP_SECONDS < 1.0


async def test_a_program_that_ignores_stop_is_killed_with_its_children_and_replaced() -> None:
    async with conversing("deaf") as conversation:
        turn = begin(conversation, "wait")
        pids = said(await until(turn, core.TextDelta)).split()
        await conversation.cancel()
        assert end(await rest(turn)) == core.TurnEnded("cancelled")
        for pid in pids:
            await has_ended(int(pid))
        events = await talk(conversation, "pid")
        assert said(events) not in pids
        assert "ignored `stop`" in notices(events)[0]


@pytest.mark.parametrize("habit", ["floods", "floods-noise"])
async def test_a_flood_cannot_drown_a_stop(habit: str) -> None:
    async with conversing(habit, stop=0.2) as conversation:
        turn = begin(conversation, "flood")
        await until(turn, core.TextDelta)
        await conversation.cancel()
        events = await rest(turn)
        assert said(events) == ""
        assert end(events).outcome == "cancelled"


async def test_a_program_that_cannot_even_be_told_to_stop_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline.base.process_streams.WRITE_LIMIT", 100_000)
    async with conversing("never-reads", stop=0.1) as conversation:
        turn = begin(conversation, "x" * 200_000)
        await until(turn, core.SessionIdentified)
        await conversation.cancel()
        assert end(await rest(turn)).outcome == "cancelled"


async def test_a_decision_after_a_turn_was_left_is_not_sent() -> None:
    async with conversing("none") as conversation:
        turn = begin(conversation, "tool edit")
        await until(turn, core.ToolRequested)
        await turn.aclose()
        await conversation.decide("t1", Approve())
        commands = json.loads(said(await talk(conversation, "commands")))
        assert [command["type"] for command in commands] == ["message", "stop", "message"]


async def test_a_program_that_ends_on_stop_is_started_again_for_the_next_turn() -> None:
    async with conversing("exits-on-stop") as conversation:
        turn = begin(conversation, "wait")
        await until(turn, core.TextDelta)
        await conversation.cancel()
        assert await rest(turn) == [core.TurnEnded("cancelled")]
        events = await talk(conversation, "hello")
        assert said(events) == "hello"
        assert "told to stop" in notices(events)[0]


async def test_leaving_a_turn_stops_it_and_the_program_serves_the_next() -> None:
    async with conversing("none") as conversation:
        pid = said(await talk(conversation, "pid"))
        turn = begin(conversation, "wait")
        await until(turn, core.TextDelta)
        await turn.aclose()
        events = await talk(conversation, "pid")
        assert said(events) == pid
        assert notices(events) == []


async def test_leaving_a_turn_of_a_program_that_ignores_stop_replaces_it() -> None:
    async with conversing("deaf", stop=0.1) as conversation:
        turn = begin(conversation, "wait")
        pids = said(await until(turn, core.TextDelta)).split()
        await turn.aclose()
        events = await talk(conversation, "hello")
        assert said(events) == "hello"
        assert "ignored `stop`" in notices(events)[0]
        for pid in pids:
            await has_ended(int(pid))


async def test_a_turn_whose_task_is_cancelled_is_stopped() -> None:
    async with conversing("none") as conversation:
        pid = said(await talk(conversation, "pid"))
        turn = begin(conversation, "wait")
        await until(turn, core.TextDelta)
        pulling = asyncio.create_task(rest(turn))
        await asyncio.sleep(0)
        pulling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await pulling
        assert said(await talk(conversation, "pid")) == pid


async def test_a_turn_that_was_left_before_it_began_costs_nothing() -> None:
    async with conversing("none") as conversation:
        await begin(conversation, "hello").aclose()
        await is_alive(conversation)


# Odd lines


async def test_noise_does_not_disturb_a_turn() -> None:
    async with conversing("noisy") as conversation:
        events = await talk(conversation, "hello")
        assert events == [core.TextDelta("hello"), core.TurnEnded("success", Usage(12, 3, 2))]


async def test_bytes_that_are_no_text_do_not_disturb_a_turn() -> None:
    async with conversing("not-utf8") as conversation:
        assert said(await talk(conversation, "hello")) == "hello"


async def test_a_line_over_the_limit_is_reported_and_the_turn_goes_on() -> None:
    async with conversing("long-lines", max_line=10_000) as conversation:
        events = await talk(conversation, "hello")
        assert said(events) == "hello"
        assert len([text for text in notices(events) if "exceeds the limit of 10000" in text]) == 2
        assert end(events).outcome == "success"


async def test_events_members_and_names_of_the_future_are_taken_as_they_are_safe() -> None:
    async with conversing("newer") as conversation:
        turn = begin(conversation, "hello")
        asked = (await until(turn, core.ToolRequested))[-1]
        assert asked == core.ToolRequested("t1", "Teleport", "exec", {}, "")
        await conversation.decide("t1", Approve())
        events = await rest(turn)
        assert core.ToolFinished("t1", "Teleport", "success", "gone") in events
        assert said(events) == "hello"


async def test_todays_dialect_is_understood() -> None:
    async with conversing("dialect") as conversation:
        await conversation.configure(SetOptions({"model": "big"}))
        events = await talk(conversation, "hello")
        assert said(events) == "hello"
        assert notices(events) == ["config updated: model", "Tool call: Write"]
        assert end(events) == core.TurnEnded("success", None)
        events = await talk(conversation, "fail")
        assert core.Failed("agent", "API error") in events
        assert end(events) == core.TurnEnded("error", NOTHING_USED)


async def test_events_without_what_they_need_are_reported_a_few_times() -> None:
    async with conversing("broken-events") as conversation:
        events = await talk(conversation, "hello")
        assert said(events) == "hello"
        assert [text for text in notices(events) if "`text` is missing" in text]
        assert len(notices(events)) == 3
        assert end(events).outcome == "success"


async def test_lone_surrogates_are_carried_both_ways() -> None:
    async with conversing("none") as conversation:
        assert said(await talk(conversation, "\ud83d half")) == "\ud83d half"


# Odd turns


async def test_an_error_followed_by_the_end_is_the_outcome() -> None:
    async with conversing("error-then-end") as conversation:
        events = await talk(conversation, "hello")
        assert core.Failed("provider", "Rate limit exceeded", True) in events
        assert end(events) == core.TurnEnded("error", Usage(12, 3, 2))


async def test_an_error_that_the_program_survives_is_not_the_outcome() -> None:
    async with conversing("error-then-more") as conversation:
        events = await talk(conversation, "hello")
        assert failures(events) == ["Rate limit exceeded"]
        assert end(events).outcome == "success"


async def test_an_error_followed_by_silence_ends_the_turn() -> None:
    async with conversing("error-only", error_quiet=0.1) as conversation:
        events = await talk(conversation, "fail")
        assert failures(events) == ["Rate limit exceeded"]
        assert notices(events) == ["sorry"]
        assert end(events) == core.TurnEnded("error")
        events = await talk(conversation, "hello")
        assert said(events) == "hello"
        assert notices(events) == []


async def test_a_refused_message_ends_its_turn_and_refused_settings_do_not() -> None:
    async with conversing("refuses", error_quiet=0.1) as conversation:
        await conversation.configure(SetOptions({"model": "big"}))
        events = await talk(conversation, "hello")
        assert "Unknown command type: set_config" in notices(events)[0]
        assert end(events).outcome == "success"
        events = await talk(conversation, "refuse")
        assert failures(events) == ["Unknown command type: message"]
        assert end(events).outcome == "error"


async def test_ends_of_other_turns_second_ends_and_late_words_are_ignored() -> None:
    async with conversing("wrong-ends") as conversation:
        for text in ("one", "two", "three"):
            events = await talk(conversation, text)
            assert said(events) == text
            assert failures(events) == []
            assert end(events).outcome == "success"


async def test_a_call_that_the_program_leaves_open_is_cancelled() -> None:
    async with conversing("leaves-calls-open") as conversation:
        events = await talk(conversation, "hello")
        assert events[-3:] == [
            core.ToolStarted("t1", "Bash"),
            core.ToolCancelled("t1", "The turn ended before this tool did"),
            core.TurnEnded("success", Usage(12, 3, 2)),
        ]


async def test_calls_without_end_fail_the_turn() -> None:
    async with conversing("many-calls") as conversation:
        events = await talk(conversation, "hello")
        assert "tool calls open at once" in failures(events)[0]
        assert end(events).outcome == "unknown"
        requested = {event.call_id for event in events if isinstance(event, core.ToolRequested)}
        cancelled = {event.call_id for event in events if isinstance(event, core.ToolCancelled)}
        assert requested == cancelled


async def test_a_message_that_is_never_read_fails_the_turn() -> None:
    async with conversing("never-reads", send=0.2) as conversation:
        events = await talk(conversation, "x" * 1_000_000)
        assert "has not read its input for 0.2 s" in failures(events)[0]
        assert end(events).outcome == "unknown"


async def test_a_message_over_the_limit_fails_its_turn_and_no_other() -> None:
    async with conversing("none", max_line=1000) as conversation:
        events = await talk(conversation, "x" * 1000)
        assert "limit of 1000 bytes" in failures(events)[0]
        assert end(events) == core.TurnEnded("error", NOTHING_USED)
        await is_alive(conversation)


# Close


async def test_closing_in_the_middle_of_a_turn_ends_both() -> None:
    async with conversing("none") as conversation:
        pid = int(said(await talk(conversation, "pid")))
        turn = begin(conversation, "wait")
        await until(turn, core.TextDelta)
        pulling = asyncio.create_task(rest(turn))
        await asyncio.sleep(0)
        await conversation.close()
        assert end(await pulling).outcome == "cancelled"
        await has_ended(pid)
        events = await talk(conversation, "hello")
        assert failures(events)
        assert end(events).outcome == "error"


async def test_neither_leaving_nor_closing_waits_for_a_program_that_is_being_stopped() -> None:
    async with conversing("deaf", stop=2 * PATIENCE_SECONDS) as conversation:
        turn = begin(conversation, "wait")
        pids = said(await until(turn, core.TextDelta)).split()
        await turn.aclose()
        for pid in pids:
            os.kill(int(pid), 0)
        await conversation.close()
        for pid in pids:
            await has_ended(int(pid))


async def test_closing_ends_a_program_that_does_not_leave() -> None:
    async with conversing("ignores-eof", close=0.05) as conversation:
        pid = int(said(await talk(conversation, "pid")))
        await conversation.close()
        await conversation.close()
        await has_ended(pid)
