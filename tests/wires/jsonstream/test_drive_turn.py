"""What a program says in a turn, and what that means: the translation, without any program."""

from __future__ import annotations

import pytest

from trunkline.core import events as core
from trunkline.core.faults import AgentFailed, RemoteProtocolError
from trunkline.core.usage import Usage
from trunkline.wires.jsonstream import messages
from trunkline.wires.jsonstream.codec import Noise
from trunkline.wires.jsonstream.drive_turn import MAX_COMPLAINTS, MAX_OPEN_CALLS, End, Heard, TurnAccount
from trunkline.wires.jsonstream.messages import ErrorBody, StreamEnd, StreamStart, ToolDetails, ToolRequest, ToolRunning

ARGS = {"file_path": "a.txt"}
RATE_LIMIT = ErrorBody("provider_error", "Rate limit exceeded", True)
REFUSAL = ErrorBody("protocol_error", "Unknown command type: foo", False)


def request(call_id: str = "t1", category: core.Category = "edit") -> ToolRequest:
    return ToolRequest("m1", call_id, ToolDetails("Write", category, ARGS, "Write to a.txt"))


def result(msg_id: str = "m1", tool_name: str = "Write") -> messages.ToolResult:
    return messages.ToolResult(msg_id, "t1", tool_name, "success", "+x", "diff", {"file_path": "a.txt"})


def account(*items: Heard, expected_refusals: int = 0) -> TurnAccount:
    """The account of the turn `m1` after some messages."""
    turn = TurnAccount("m1", expected_refusals=expected_refusals)
    for item in items:
        turn.read(item)
    return turn


@pytest.mark.parametrize(
    ("heard", "event"),
    [
        (StreamStart("m1"), None),
        (messages.TextDelta("Hi", "m1"), core.TextDelta("Hi")),
        (messages.Thinking("Hm", "m1"), core.ThinkingDelta("Hm")),
        (request(), core.ToolRequested("t1", "Write", "edit", ARGS, "Write to a.txt")),
        (ToolRunning("m1", "t1", "Write"), core.ToolStarted("t1", "Write")),
        (result(), core.ToolFinished("t1", "Write", "success", "+x", "diff", {"file_path": "a.txt"})),
        (messages.ToolCancelled("m1", "t1", "no"), core.ToolCancelled("t1", "no")),
        (messages.Error("m1", RATE_LIMIT), core.Failed("provider", "Rate limit exceeded", True)),
        (messages.Error(None, RATE_LIMIT), core.Failed("provider", "Rate limit exceeded", True)),
        (messages.Error("m1", ErrorBody("tool_error", "x", False)), core.Failed("tool", "x")),
        (messages.Error("m1", ErrorBody("config_error", "x", False)), core.Failed("config", "x")),
        (messages.Error("m1", ErrorBody("internal_error", "x", False)), core.Failed("agent", "x")),
        (messages.Error("m1", ErrorBody("protocol_error", "x", False)), core.Failed("agent", "x")),
        (messages.Info("m1", "retrying"), core.Notice("retrying")),
        (messages.Info("", "retrying"), core.Notice("retrying")),
        (messages.McpReady("files", ("ls",)), core.Extension("mcp_ready", {"name": "files", "tools": ["ls"]})),
        (messages.Pong(), None),
        (Noise(b"hello"), None),
    ],
)
def test_each_message_has_its_event(heard: Heard, event: core.Event | None) -> None:
    assert account().read(heard) == event


@pytest.mark.parametrize(
    "heard",
    [
        messages.TextDelta("Hi", "m0"),
        messages.Thinking("Hm", "m0"),
        ToolRequest("m0", "t1", ToolDetails("Write", "edit", {}, "")),
        ToolRunning("m0", "t1", "Write"),
        result("m0"),
        messages.ToolCancelled("m0", "t1", ""),
        messages.Error("m0", RATE_LIMIT),
        messages.Info("m0", "late"),
        StreamStart("m0"),
        StreamEnd("m0"),
    ],
    ids=lambda heard: heard.type,
)
def test_messages_of_another_turn_mean_nothing(heard: messages.Event) -> None:
    turn = account()
    assert turn.read(heard) is None
    assert (turn.begun, turn.ended, turn.failed) == (False, False, False)
    assert turn.settle("") == []


def test_an_error_without_words_still_says_something() -> None:
    failed = account().read(messages.Error("m1", ErrorBody("internal_error", "", False)))
    assert isinstance(failed, core.Failed)
    assert failed.message


def test_the_name_of_a_tool_is_remembered_from_its_request() -> None:
    turn = account(request())
    assert turn.read(ToolRunning("m1", "t1", "")) == core.ToolStarted("t1", "Write")
    finished = turn.read(result(tool_name=""))
    assert isinstance(finished, core.ToolFinished)
    assert finished.name == "Write"


def test_a_request_is_passed_on_once_while_it_is_open() -> None:
    turn = account(request())
    assert turn.read(request()) is None
    turn.read(result())
    assert turn.read(request()) is not None


def test_usage_is_that_of_the_stream_end_and_absent_stays_absent() -> None:
    assert account(StreamEnd("m1", Usage(12, 3))).usage == Usage(12, 3)
    assert account(StreamEnd("m1")).usage is None


def test_an_end_without_an_id_counts_only_for_a_turn_that_has_begun() -> None:
    assert not account(StreamEnd("")).ended
    assert account(StreamStart("m1"), StreamEnd("")).ended


@pytest.mark.parametrize(
    ("heard", "end", "outcome"),
    [
        ([], "stream_end", "success"),
        ([messages.Error("m1", RATE_LIMIT)], "stream_end", "error"),
        ([messages.Error(None, RATE_LIMIT)], "stream_end", "error"),
        ([messages.Error("m1", RATE_LIMIT), messages.TextDelta("Hi", "m1")], "stream_end", "success"),
        ([messages.Error("m1", RATE_LIMIT), request()], "stream_end", "success"),
        ([messages.Error("m1", RATE_LIMIT), messages.Info("m1", "sorry")], "stream_end", "error"),
        ([request(), messages.Error("m1", RATE_LIMIT), result()], "stream_end", "error"),
        ([messages.Error("m1", RATE_LIMIT)], "silence", "error"),
        ([messages.TextDelta("Hi", "m1")], "death", "unknown"),
        ([request()], "death", "unknown"),
        ([request(), ToolRunning("m1", "t1", "Write")], "death", "unknown"),
        ([request(category="info"), ToolRunning("m1", "t1", "Write")], "death", "unknown"),
        ([ToolRunning("m1", "t1", "Write")], "death", "unknown"),
        ([ToolRunning("m1", "t1", "Grep")], "death", "unknown"),
        ([request(), ToolRunning("m1", "t1", "Write"), result()], "death", "unknown"),
        ([ToolRunning("m1", "t1", "Write"), messages.ToolCancelled("m1", "t1", "")], "death", "unknown"),
    ],
)
def test_how_a_turn_comes_out(heard: list[Heard], end: End, outcome: core.Outcome) -> None:
    turn = account(*heard)
    assert turn.outcome(end) == outcome
    turn.stopped = True
    assert turn.outcome(end) == "cancelled"


def test_only_a_call_that_waits_can_be_decided() -> None:
    turn = account(request())
    assert turn.awaits("t1")
    assert not turn.awaits("t2")
    turn.read(ToolRunning("m1", "t1", "Write"))
    assert not turn.awaits("t1")


def test_calls_that_are_open_at_the_end_are_closed_once() -> None:
    turn = account(request("t1"), request("t2"), messages.ToolCancelled("m1", "t2", ""))
    assert turn.settle("over") == [core.ToolCancelled("t1", "over")]
    assert turn.settle("over") == []


def test_silence_after_an_error_means_the_end_unless_a_tool_is_open() -> None:
    assert account(messages.Error("m1", RATE_LIMIT)).seems_over
    assert not account(messages.Error("m1", RATE_LIMIT), messages.TextDelta("Hi", "m1")).seems_over
    assert not account(request(), messages.Error("m1", RATE_LIMIT)).seems_over
    assert account(request(), messages.Error("m1", RATE_LIMIT), result()).seems_over


def test_after_a_stop_only_the_fate_of_tools_matters() -> None:
    turn = account(ToolRunning("m1", "t1", "Bash"))
    turn.stopped = True
    assert turn.read(messages.TextDelta("more", "m1")) is None
    assert turn.read(messages.Error("m1", RATE_LIMIT)) is None
    assert turn.read(request("t2")) is None
    assert isinstance(turn.read(result()), core.ToolFinished)
    assert turn.settle("") == []


def test_a_refused_setting_is_a_notice_and_a_refused_message_a_failure() -> None:
    turn = account(expected_refusals=1)
    assert isinstance(turn.read(messages.Error(None, REFUSAL)), core.Notice)
    assert not turn.failed
    assert isinstance(turn.read(messages.Error(None, REFUSAL)), core.Failed)
    assert turn.failed


def test_a_refused_answer_in_the_middle_of_a_turn_is_a_notice() -> None:
    turn = account(StreamStart("m1"))
    assert isinstance(turn.read(messages.Error(None, REFUSAL)), core.Notice)
    assert not turn.failed


def test_only_the_first_broken_lines_of_a_turn_are_reported() -> None:
    turn = account()
    told = [turn.read(RemoteProtocolError("Invalid `text_delta`")) for _ in range(MAX_COMPLAINTS + 5)]
    assert [isinstance(event, core.Notice) for event in told] == [True] * MAX_COMPLAINTS + [False] * 5


def test_calls_without_end_are_a_failure_and_not_a_leak() -> None:
    turn = account(*(request(f"t{number}") for number in range(MAX_OPEN_CALLS)))
    with pytest.raises(AgentFailed):
        turn.read(request("one more"))


def test_a_turn_ends_with_the_messages_that_were_put_into_it() -> None:
    turn = account(StreamStart("m1"))
    turn.join("m2")
    turn.read(StreamEnd("m1", Usage(10, 3)))
    assert not turn.ended
    turn.read(StreamStart("m2"))
    turn.read(StreamEnd("m2", Usage(0, 0)))
    assert (turn.ended, turn.usage, turn.outcome("stream_end")) == (True, Usage(10, 3), "success")


def test_one_that_came_too_late_to_be_put_into_the_turn_is_answered_in_it_all_the_same() -> None:
    turn = account(StreamStart("m1"))
    turn.join("m2")
    turn.read(StreamEnd("m1", Usage(10, 3)))
    assert turn.read(messages.TextDelta("Oui.", "m2")) == core.TextDelta("Oui.")
    turn.read(StreamEnd("m2", Usage(20, 2)))
    assert (turn.ended, turn.usage) == (True, Usage(30, 5))


def test_an_error_of_the_turn_is_not_forgotten_when_the_end_of_another_message_comes() -> None:
    turn = account(StreamStart("m1"))
    turn.join("m2")
    for heard in (messages.Error("m1", RATE_LIMIT), StreamEnd("m1"), StreamStart("m2"), StreamEnd("m2")):
        assert not turn.seems_over or not isinstance(heard, StreamStart)
        turn.read(heard)
    assert turn.outcome("stream_end") == "error"
