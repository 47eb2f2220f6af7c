"""The agent end, command by command, with an agent that says just what each test needs. No process, no real time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support.served import Served, served
from trunkline.core import events as core
from trunkline.core.agent import AddHistory, Approve, Deny, SetOptions
from trunkline.core.events import (
    Audio,
    Extension,
    Failed,
    Granted,
    GrantRevoked,
    Notice,
    Progress,
    SessionIdentified,
    TextDelta,
    ThinkingDelta,
    ToolCancelled,
    ToolFinished,
    ToolRequested,
    ToolStarted,
    TurnEnded,
    UserMessage,
)
from trunkline.core.fault_table import TABLE
from trunkline.core.faults import ProviderError, Unsupported
from trunkline.core.usage import Usage

DONE = TurnEnded("success", Usage(10, 3))
WRITE = ToolRequested("t1", "Write", "edit", {"file_path": "a.txt"}, "Write to a.txt")
BASH = ToolRequested("t2", "Bash", "exec", {"command": "ls"}, "Execute: ls")
EDIT = ToolRequested("t3", "Edit", "edit", {"file_path": "a.txt"}, "Edit a.txt")


async def ask(it: Served, *events: core.Event) -> None:
    """Begin a message and let the agent say something; the lines up to here are taken."""
    it.host.message("m1")
    await it.settle()
    it.fake.say(*events)
    await it.settle()
    it.host.take()


def errors(lines: list[dict[str, Any]]) -> list[tuple[str | None, str]]:
    return [(line["msg_id"], line["error"]["code"]) for line in lines if line["type"] == "error"]


# Starting


@pytest.mark.virtual_time
async def test_ready_names_the_version_the_session_and_the_capabilities() -> None:
    async with served() as it:
        assert it.host.take() == [
            {
                "type": "ready",
                "version": "0.1.0",
                "capabilities": {
                    "tool_approval": True,
                    "thinking": True,
                    "mcp": False,
                    "image_input": "unsupported",
                    "effort": False,
                    "effort_levels": [],
                    "modes": ["default", "auto_edit", "yolo", "plan"],
                    "current_mode": "default",
                    "steering": False,
                },
                "session_id": "s1",
            }
        ]


# Message turns


@pytest.mark.virtual_time
async def test_a_message_is_answered_between_stream_start_and_stream_end(it: Served) -> None:
    it.host.message("m1", "Hello")
    await it.settle()
    assert it.fake.heard == [UserMessage("Hello", (), "m1")]
    it.fake.say(ThinkingDelta("hm"), TextDelta("Hi! "), TextDelta("How can I help?"), DONE)
    await it.settle()
    assert it.host.take() == [
        {"type": "stream_start", "msg_id": "m1"},
        {"type": "thinking", "text": "hm", "msg_id": "m1"},
        {"type": "text_delta", "text": "Hi! ", "msg_id": "m1"},
        {"type": "text_delta", "text": "How can I help?", "msg_id": "m1"},
        {"type": "stream_end", "msg_id": "m1", "usage": {"input_tokens": 10, "output_tokens": 3}},
    ]


@pytest.mark.virtual_time
async def test_newer_hosts_may_write_content_for_input_and_attach_files(it: Served) -> None:
    it.host.send(type="message", msg_id="m1", content="Hello", files=["/a.png"])
    await it.settle()
    assert it.fake.heard == [UserMessage("Hello", ("/a.png",), "m1")]


@pytest.mark.virtual_time
async def test_usage_is_the_messages_own_and_absent_when_nobody_knows_it(it: Served) -> None:
    for msg_id, usage in (("m1", Usage(5, 1, 4, 0)), ("m2", Usage(5, 1)), ("m3", None)):
        it.host.message(msg_id)
        await it.settle()
        it.fake.say(TurnEnded("success", usage))
        await it.settle()
    ends = [line.get("usage") for line in it.host.take() if line["type"] == "stream_end"]
    assert ends == [
        {"input_tokens": 5, "output_tokens": 1, "cache_read_tokens": 4},
        {"input_tokens": 5, "output_tokens": 1},
        None,
    ]
    assert it.session.state.total == Usage(10, 2, 4, 0)


@pytest.mark.virtual_time
async def test_messages_that_come_in_a_turn_are_answered_in_order(it: Served) -> None:
    for msg_id in ("m1", "m2", "m3"):
        it.host.message(msg_id)
    for _ in range(3):
        await it.settle()
        it.fake.say(DONE)
    await it.settle()
    assert [message.id for message in it.fake.heard] == ["m1", "m2", "m3"]
    assert it.host.types() == ["stream_start", "stream_end"] * 3


@pytest.mark.virtual_time
async def test_a_repeated_msg_id_is_just_another_message(it: Served) -> None:
    for _ in range(2):
        it.host.message("same")
        await it.settle()
        it.fake.say(DONE)
        await it.settle()
    assert it.host.ends == {"same": 2}


@pytest.mark.virtual_time
@pytest.mark.parametrize("text", ["", "   \n"])
async def test_an_empty_message_gets_an_error_and_an_end_and_never_reaches_the_agent(text: str) -> None:
    async with served() as it:
        it.host.take()
        it.host.message("m1", text)
        await it.settle()
        lines = it.host.take()
        assert [line["type"] for line in lines] == ["stream_start", "error", "stream_end"]
        assert errors(lines) == [("m1", "protocol_error")]
        assert lines[2]["usage"] == {"input_tokens": 0, "output_tokens": 0}
        assert it.fake.heard == []


# Approvals


@pytest.mark.virtual_time
async def test_a_request_waits_and_approval_lets_the_tool_run(it: Served) -> None:
    it.host.message("m1")
    await it.settle()
    it.fake.say(WRITE)
    await it.settle()
    assert it.host.take()[-1] == {
        "type": "tool_request",
        "msg_id": "m1",
        "call_id": "t1",
        "tool": {
            "name": "Write",
            "category": "edit",
            "args": {"file_path": "a.txt"},
            "description": "Write to a.txt",
        },
    }
    await asyncio.sleep(3600)
    assert it.host.take() == []
    assert it.fake.decisions == []
    it.host.send(type="tool_approve", call_id="t1", scope="once")
    await it.settle()
    assert it.fake.decisions == [("t1", Approve("once"))]
    diff = ToolFinished("t1", "Write", "success", "--- a\n+++ b", "diff", {"file_path": "a.txt"})
    it.fake.say(ToolStarted("t1", "Write"), diff, DONE)
    await it.settle()
    assert it.host.take()[:2] == [
        {"type": "tool_running", "msg_id": "m1", "call_id": "t1", "tool_name": "Write"},
        {
            "type": "tool_result",
            "msg_id": "m1",
            "call_id": "t1",
            "tool_name": "Write",
            "status": "success",
            "output": "--- a\n+++ b",
            "output_type": "diff",
            "metadata": {"file_path": "a.txt"},
        },
    ]


@pytest.mark.virtual_time
async def test_a_denial_is_shown_its_reason_reaches_the_agent_and_the_turn_goes_on(it: Served) -> None:
    await ask(it, WRITE)
    it.host.send(type="tool_deny", call_id="t1", reason="Not here")
    await it.settle()
    assert it.fake.decisions == [("t1", Deny("Not here"))]
    it.fake.say(TextDelta("Fine."), DONE)
    await it.settle()
    lines = it.host.take()
    assert lines[0] == {"type": "tool_cancelled", "msg_id": "m1", "call_id": "t1", "reason": "Not here"}
    assert [line["type"] for line in lines] == ["tool_cancelled", "text_delta", "stream_end"]


@pytest.mark.virtual_time
async def test_a_denial_without_a_reason_says_user_denied(it: Served) -> None:
    await ask(it, WRITE)
    it.host.send(type="tool_deny", call_id="t1")
    await it.settle()
    assert it.host.take()[0]["reason"] == "User denied"
    assert it.fake.decisions == [("t1", Deny("User denied"))]


@pytest.mark.virtual_time
async def test_several_requests_are_open_at_once_and_answered_in_any_order(it: Served) -> None:
    it.host.message("m1")
    await it.settle()
    it.fake.say(WRITE, BASH)
    await it.settle()
    assert it.host.types() == ["stream_start", "tool_request t1", "tool_request t2"]
    it.host.send(type="tool_deny", call_id="t2", reason="no")
    it.host.send(type="tool_approve", call_id="t1")
    await it.settle()
    assert it.fake.decisions == [("t2", Deny("no")), ("t1", Approve())]
    it.fake.say(ToolStarted("t1", "Write"), ToolFinished("t1", "Write", "success", "ok"), DONE)
    await it.settle()
    assert it.host.types() == ["tool_cancelled t2", "tool_running t1", "tool_result t1", "stream_end"]


@pytest.mark.virtual_time
async def test_an_approval_for_once_does_not_cover_the_next_call(it: Served) -> None:
    await ask(it, WRITE)
    it.host.send(type="tool_approve", call_id="t1", scope="once")
    it.fake.say(EDIT)
    await it.settle()
    assert it.host.types() == ["tool_request t3"]


@pytest.mark.virtual_time
async def test_an_approval_for_always_covers_the_category_also_what_is_pending_and_nothing_else(it: Served) -> None:
    await ask(it, WRITE, EDIT, BASH)
    it.host.send(type="tool_approve", call_id="t1", scope="always")
    await it.settle()
    # The agent goes on asking: what is granted is the session's to know.
    assert it.fake.decisions == [("t1", Approve()), ("t3", Approve())]
    it.fake.say(ToolRequested("t4", "Edit", "edit", {}))
    await it.settle()
    assert it.fake.decisions[-1] == ("t4", Approve())
    assert it.host.types() == []
    assert [request.call_id for request in it.session._turns.pending] == ["t2"]


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("mode", "released"),
    [("default", []), ("auto_edit", ["t1"]), ("yolo", ["t1", "t2", "t5"])],
)
async def test_a_mode_releases_what_is_pending_and_covers_what_comes(mode: str, released: list[str]) -> None:
    async with served() as it:
        await ask(it, WRITE, BASH, ToolRequested("t5", "mcp_tool", "mcp", {}))
        it.host.send(type="set_mode", mode=mode)
        await it.settle()
        assert [call for call, _ in it.fake.decisions] == released
        assert it.host.take()[0] == {"type": "info", "msg_id": "m1", "message": f"mode updated: {mode}"}


@pytest.mark.virtual_time
async def test_reading_tools_need_no_approval_unless_told_otherwise(it: Served) -> None:
    await ask(it, ToolRequested("r1", "Read", "info", {}), ToolRequested("r2", "ViewImage", "info", {}))
    assert it.fake.decisions == [("r1", Approve())]
    assert [request.call_id for request in it.session._turns.pending] == ["r2"]


@pytest.mark.virtual_time
@pytest.mark.parametrize("command", ["tool_approve", "tool_deny"])
async def test_an_unknown_or_repeated_call_id_is_a_protocol_error(command: str) -> None:
    async with served() as it:
        await ask(it, WRITE)
        it.host.send(type=command, call_id="nope")
        it.host.send(type=command, call_id="t1")
        await it.settle()
        it.host.send(type=command, call_id="t1")
        await it.settle()
        assert errors(it.host.take()) == [(None, "protocol_error")] * 2
        assert len(it.fake.decisions) == 1


# Stopping


@pytest.mark.virtual_time
async def test_stop_ends_the_turn_and_the_next_message_works(it: Served) -> None:
    await ask(it)
    it.host.send(type="stop")
    await it.settle()
    assert it.host.types() == ["stream_end"]
    it.host.message("m2")
    await it.settle()
    it.fake.say(TextDelta("still here"), DONE)
    await it.settle()
    assert it.host.types() == ["stream_start", "text_delta", "stream_end"]


@pytest.mark.virtual_time
async def test_stop_cancels_pending_calls_first(it: Served) -> None:
    await ask(it, WRITE, BASH)
    it.host.send(type="stop")
    await it.settle()
    lines = it.host.take()
    assert [line["type"] for line in lines] == ["tool_cancelled", "tool_cancelled", "stream_end"]
    assert {line["reason"] for line in lines[:2]} == {"Stopped by user"}
    it.host.send(type="tool_approve", call_id="t1")
    await it.settle()
    assert errors(it.host.take()) == [(None, "protocol_error")]


@pytest.mark.virtual_time
async def test_stop_cancels_a_running_tool(it: Served) -> None:
    await ask(it, ToolStarted("t1", "Bash"))
    it.host.send(type="stop")
    await it.settle()
    assert it.host.types() == ["tool_cancelled t1", "stream_end"]


@pytest.mark.virtual_time
async def test_stop_when_idle_does_nothing(it: Served) -> None:
    it.host.send(type="stop")
    await asyncio.sleep(10)
    assert it.host.take() == []
    await ask(it)
    it.fake.say(DONE)
    await it.settle()
    it.host.send(type="stop")
    await asyncio.sleep(10)
    assert it.host.types() == ["stream_end"]


@pytest.mark.virtual_time
@pytest.mark.parametrize("deaf", [False, True])
async def test_an_agent_that_ignores_stop_is_cut_off_within_a_second(deaf: bool) -> None:
    async with served() as it:
        await ask(it, ToolStarted("t1", "Bash"))
        it.fake.obedient, it.fake.deaf = False, deaf
        it.host.send(type="stop")
        await asyncio.sleep(1)
        assert it.host.types() == ["tool_cancelled t1", "stream_end"]
        it.host.message("m2")
        await asyncio.sleep(1)
        it.fake.say(DONE)
        await it.settle()
        # One that swallows its own cancellation is still in its old turn: the message fails, and says so.
        assert ("error" in it.host.types()) is deaf
        assert it.host.ends == {"m1": 1, "m2": 1}


@pytest.mark.virtual_time
async def test_stop_drops_the_queue_and_each_dropped_message_gets_its_end(it: Served) -> None:
    await ask(it)
    it.host.message("m2")
    it.host.message("m3")
    it.host.send(type="stop")
    it.host.message("m4")
    await it.settle()
    assert it.host.types() == ["stream_end", *["stream_start", "info", "stream_end"] * 2, "stream_start"]
    assert [message.id for message in it.fake.heard] == ["m1", "m4"]


@pytest.mark.virtual_time
async def test_a_stop_that_overtakes_the_agents_start_still_ends_the_turn(it: Served) -> None:
    it.host.message("m1")
    it.host.send(type="stop")
    await it.settle()
    lines = it.host.take()
    assert [line["type"] for line in lines] == ["stream_start", "stream_end"]
    assert lines[1]["usage"] == {"input_tokens": 0, "output_tokens": 0}
    assert it.fake.heard == []


# Faults


@pytest.mark.virtual_time
async def test_a_crash_of_the_agent_is_an_internal_error_and_the_next_message_works(it: Served) -> None:
    await ask(it, WRITE)
    it.fake.crash(RuntimeError("boom"))
    await it.settle()
    lines = it.host.take()
    assert [line["type"] for line in lines] == ["error", "tool_cancelled", "stream_end"]
    told = "The agent failed. Its log says why."
    assert lines[0]["error"] == {"code": "internal_error", "message": told, "retryable": False}
    it.host.message("m2")
    await it.settle()
    it.fake.say(DONE)
    await it.settle()
    assert it.host.ends == {"m1": 1, "m2": 1}


@pytest.mark.virtual_time
async def test_a_providers_fault_keeps_its_code_and_says_whether_to_retry(it: Served) -> None:
    await ask(it)
    it.fake.crash(ProviderError("Rate limit exceeded.", retryable=True, hint="Retry after 30s."))
    await it.settle()
    body = {"code": "provider_error", "message": "Rate limit exceeded. Retry after 30s.", "retryable": True}
    assert it.host.take()[0] == {"type": "error", "msg_id": "m1", "error": body}


@pytest.mark.virtual_time
async def test_a_tool_error_and_an_image_have_their_form(it: Served) -> None:
    image = ToolFinished("t1", "ViewImage", "success", "aGk=", "image", {"media_type": "image/png"})
    await ask(it)
    it.fake.say(Failed("tool", "disk full"), ToolStarted("t1", "ViewImage"), image, DONE)
    await it.settle()
    lines = it.host.take()
    assert lines[0]["error"]["code"] == "tool_error"
    assert (lines[2]["output"], lines[2]["output_type"]) == ("aGk=", "image")


@pytest.mark.virtual_time
async def test_an_agent_that_just_stops_talking_is_an_internal_error(it: Served) -> None:
    await ask(it)
    it.fake.vanish()
    await it.settle()
    assert it.host.types() == ["error", "stream_end"]


@pytest.mark.virtual_time
async def test_a_turn_that_failed_without_a_word_still_has_an_error(it: Served) -> None:
    await ask(it)
    it.fake.say(TurnEnded("error"))
    await it.settle()
    assert it.host.types() == ["error", "stream_end"]


@pytest.mark.virtual_time
async def test_a_decision_that_cannot_be_delivered_ends_the_turn_with_an_error(it: Served) -> None:
    await ask(it, WRITE)
    it.fake.refuses = OSError("pipe closed")
    it.host.send(type="tool_deny", call_id="t1", reason="no")
    await it.settle()
    assert it.host.types() == ["tool_cancelled t1", "error", "stream_end"]


# Bad lines


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"{", "Malformed JSON"),
        (b"hello", "Malformed JSON"),
        (b'{"type":"foo"}', "Unknown command type: foo"),
        (b"[]", "must be a JSON object"),
        (b'{"msg_id":"m1"}', "`type` is missing"),
        (b'{"type":3}', "`type` must be a string"),
        (b'{"type":"message","input":"x"}', "`msg_id` is missing"),
        (b'{"type":"message","msg_id":"","input":"x"}', "`msg_id` is empty"),
        (b'{"type":"message","msg_id":"m"}', "`input` is missing"),
        (b'{"type":"message","msg_id":"m","input":3}', "`input` must be a string"),
        (b'{"type":"message","msg_id":7,"input":"x"}', "`msg_id` must be a string"),
        (b'{"type":"message","msg_id":"m","input":"x","files":"a"}', "`files` must be a list"),
        (b'{"type":"message","msg_id":"m","input":"x","files":[1]}', "`files.0` must be a string"),
        (b'{"type":"tool_approve"}', "`call_id` is missing"),
        (b'{"type":"tool_approve","call_id":"t","scope":"forever"}', "`scope` must be one of"),
        (b'{"type":"tool_deny","call_id":null}', "`call_id` must be a string"),
        (b'{"type":"set_mode","mode":"turbo"}', "`mode` must be one of"),
        (b'{"type":"set_mode"}', "`mode` is missing"),
        (b'{"type":"init_history"}', "`text` is missing"),
        (b'{"type":"message","msg_id":"m","input":"\xff"}', "invalid UTF-8"),
        (b'{"type":"message","msg_id":"m","input":NaN}', "`NaN` is not JSON"),
        (b'{"type":"message","msg_id":"m","input":"x","y":1e999}', "too large"),
        (b"[" * 500 + b"]" * 500, "nested deeper"),
        (b"[" * 900, "Malformed JSON"),
        (b'{"type":"stop","x":"' + b"x" * 1000 + b'"}', "exceeds the limit of 1000 bytes"),
    ],
)
async def test_a_bad_line_is_one_protocol_error_and_the_next_line_works(line: bytes, says: str) -> None:
    async with served() as it:
        it.host.take()
        it.server.feed(line + b"\n" + b'{"type":"ping"}\n')
        error, pong = it.host.take()
        assert error["msg_id"] is None
        assert error["error"]["code"] == "protocol_error"
        assert error["error"]["retryable"] is False
        assert says in error["error"]["message"]
        assert pong == {"type": "pong"}


@pytest.mark.virtual_time
async def test_blank_lines_carriage_returns_and_a_byte_order_mark_are_harmless(it: Served) -> None:
    it.server.feed(b'\xef\xbb\xbf{"type":"ping"}\r\n\r\n  \n\n{"type":"ping","new":1}\n')
    assert it.host.types() == ["pong", "pong"]


@pytest.mark.virtual_time
async def test_line_separators_inside_a_text_do_not_end_the_line(it: Served) -> None:
    it.server.feed('{"type":"message","msg_id":"m1","input":"a\u2028b\u2029c\x85d"}\n'.encode())
    await it.settle()
    assert it.fake.heard[0].text == "a\u2028b\u2029c\x85d"


@pytest.mark.virtual_time
async def test_a_line_may_come_byte_by_byte_and_split_inside_a_character(it: Served) -> None:
    for byte in '{"type":"message","msg_id":"m1","input":"é€😀"}\n'.encode():
        it.server.feed(bytes([byte]))
    await it.settle()
    assert it.fake.heard[0].text == "é€😀"


@pytest.mark.virtual_time
async def test_lone_surrogates_are_carried_both_ways(it: Served) -> None:
    it.server.feed(b'{"type":"message","msg_id":"\\ud800","input":"\\udc00"}\n')
    await it.settle()
    assert it.fake.heard[0].text == "\udc00"
    it.fake.say(TextDelta("\udfff"), Notice("\ud801"), DONE)
    await it.settle()
    lines = it.host.take()
    assert (lines[0]["msg_id"], lines[1]["text"], lines[2]["message"]) == ("\ud800", "\udfff", "\ud801")


@pytest.mark.virtual_time
async def test_the_last_line_may_lack_its_line_feed(it: Served) -> None:
    it.server.feed(b'{"type":"ping"}')
    assert it.host.take() == []
    it.server.end()
    assert it.host.types() == ["pong"]


# History, configuration, dialect


@pytest.mark.virtual_time
async def test_history_comes_before_the_first_message_and_as_often_as_needed(it: Served) -> None:
    it.host.send(type="init_history", text="rules")
    it.host.send(type="init_history", text="summary")
    it.host.message("m1")
    await it.settle()
    assert it.fake.changes == [AddHistory("rules"), AddHistory("summary")]
    assert it.session.state.history == ["rules", "summary"]
    assert [message.id for message in it.fake.heard] == ["m1"]


@pytest.mark.virtual_time
async def test_ping_is_answered_also_while_a_request_waits(it: Served) -> None:
    await ask(it, WRITE)
    it.host.send(type="ping")
    assert it.host.take() == [{"type": "pong"}]


@pytest.mark.virtual_time
async def test_set_config_applies_between_turns_and_the_last_word_on_each_option_wins(it: Served) -> None:
    await ask(it)
    it.host.send(type="set_config", model="one", effort="high")
    it.host.send(type="set_config", model="two")
    await it.settle()
    assert it.fake.changes == []
    assert [line["msg_id"] for line in it.host.take()] == ["m1", "m1"]
    it.fake.say(DONE)
    await it.settle()
    assert it.fake.changes == [SetOptions({"model": "two", "effort": "high"})]
    assert it.host.types() == ["stream_end", "info", "config_changed"]


@pytest.mark.virtual_time
async def test_set_config_that_the_agent_cannot_do_is_told_and_changes_nothing(it: Served) -> None:
    it.fake.refuses = Unsupported("this agent has no model")
    it.host.send(type="set_config", model="x")
    await it.settle()
    info, changed = it.host.take()
    assert info == {"type": "info", "msg_id": "", "message": "set_config: this agent has no model"}
    assert changed["capabilities"]["current_mode"] == "default"


@pytest.mark.virtual_time
async def test_an_mcp_server_that_the_agent_cannot_take_is_a_protocol_error(it: Served) -> None:
    it.fake.refuses = Unsupported("MCP is not available")
    it.host.send(type="add_mcp_server", name="files", transport="stdio", command="mcp-files")
    await it.settle()
    assert errors(it.host.take()) == [(None, "protocol_error")]


# The form of every event


def test_every_event_of_the_core_has_its_line_or_is_knowingly_left_out() -> None:
    from trunkline.wires.jsonstream.serve import to_message

    carried = {
        core.TurnStarted: core.TurnStarted(UserMessage("x")),
        core.Steered: core.Steered(UserMessage("x")),
        TextDelta: TextDelta("x"),
        ThinkingDelta: ThinkingDelta("x"),
        ToolRequested: WRITE,
        core.ToolAnswered: core.ToolAnswered("t", False, "ana"),
        ToolStarted: ToolStarted("t", "x"),
        ToolFinished: ToolFinished("t", "x", "error", "no"),
        ToolCancelled: ToolCancelled("t", "no"),
        Progress: Progress("x"),
        Notice: Notice("x"),
        core.Plan: core.Plan((core.PlanEntry("x"),)),
        core.ModeChanged: core.ModeChanged("yolo"),
        Failed: Failed("config", "x"),
        Extension: Extension("mcp_ready", {"name": "s", "tools": ["a"]}),
        TurnEnded: DONE,
    }
    left_out: list[core.Event] = [
        Audio(b"", 16000),
        SessionIdentified("x"),
        Granted("edit"),
        GrantRevoked("edit"),
        core.HistoryInjected("x"),
        core.ToolJudged("t", "x", "edit", {}, "", "allow"),
        core.StopAsked("ana"),
        core.Journaled({}),
        core.JournalReplaced(()),
        core.Checkpointed({}),
    ]
    assert {*carried, *map(type, left_out)} == set(core.EVENTS)
    assert all(to_message(event, "m") is not None for event in carried.values())
    assert all(to_message(event, "m") is None for event in left_out)
    assert to_message(Extension("other", {}), "m") is None


@pytest.mark.parametrize("kind", TABLE)
def test_every_fault_has_its_code(kind: str) -> None:
    from trunkline.wires.jsonstream.serve import to_message

    message = to_message(Failed(kind, "text", retryable=True), None)
    assert message is not None
    assert message.error.code == TABLE[kind].jsonstream  # type: ignore[attr-defined]
