"""AgentProc 0.4: JSON objects, one to a line."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.session_ids import NO_SESSION_IDS, SESSION_IDS
from trunkline.core.faults import RemoteProtocolError
from trunkline.wires.agentproc.codec import MAX_LINE, SESSION_ID_RULE
from trunkline.wires.agentproc.codec_auto import MAX_HELD, AutoReader
from trunkline.wires.agentproc.codec_ndjson import (
    NdjsonReader,
    decode_response,
    decode_turn,
    encode_error,
    encode_partial,
    encode_request,
    encode_response,
    encode_result,
    encode_turn,
)
from trunkline.wires.agentproc.messages import (
    Attachment,
    Body,
    Error,
    Ignored,
    Partial,
    PermissionRequest,
    PermissionResponse,
    Result,
    Said,
    SessionId,
    TurnRequest,
)


def read(*events: Any) -> list[Said]:
    """What comes of lines: bytes as they are, anything else as JSON."""
    reader = NdjsonReader()
    data = b"".join((event if isinstance(event, bytes) else json.dumps(event).encode()) + b"\n" for event in events)
    return reader.feed(data) + reader.finish()


def auto(data: bytes) -> list[Said]:
    reader = AutoReader()
    return reader.feed(data) + reader.finish()


def test_each_event_is_read() -> None:
    assert read({"type": "partial", "text": "hi"}) == [Partial("hi")]
    assert read({"type": "partial", "text": "hm", "role": "thinking"}) == [Partial("hm", "thinking")]
    assert read({"type": "result", "text": "all", "usage": {"input_tokens": 1}}) == [Result("all", {"input_tokens": 1})]
    assert read({"type": "error", "message": "bad"}) == [Error("bad")]


def test_the_first_session_id_counts_and_another_one_is_left_out_with_a_warning() -> None:
    said = read(
        {"type": "partial", "text": "a", "session_id": "one"},
        {"type": "partial", "text": "b", "session_id": "one"},
        {"type": "result", "text": "c", "session_id": "two"},
    )
    assert said[:3] == [SessionId("one"), Partial("a"), Partial("b")]
    assert isinstance(said[3], Ignored)
    assert said[4] == Result("c")


@pytest.mark.parametrize("value", SESSION_IDS)
def test_a_session_id_in_any_script_counts(value: str) -> None:
    assert read({"type": "result", "text": "x", "session_id": value}) == [SessionId(value), Result("x")]


@pytest.mark.parametrize("value", NO_SESSION_IDS)
def test_a_session_id_that_cannot_be_one_is_left_out_with_the_rule(value: str) -> None:
    said = read({"type": "result", "text": "x", "session_id": value})
    assert isinstance(said[0], Ignored)
    assert said[0].why.endswith(SESSION_ID_RULE)
    assert said[1:] == [Result("x")]


@pytest.mark.parametrize("value", [7, None, "", ["s"]])
def test_what_is_no_session_id_at_all_does_not_count(value: Any) -> None:
    assert read({"type": "result", "text": "x", "session_id": value}) == [Result("x")]


@pytest.mark.parametrize("member", [7, None, ["x"], {"a": 1}])
def test_a_text_of_the_wrong_type_is_no_text(member: Any) -> None:
    assert read({"type": "partial", "text": member}) == [Partial("")]
    assert read({"type": "error", "message": member}) == [Error("")]


@pytest.mark.parametrize("line", [b"plain", b"[1]", b'"x"', b'{"type":"session"}', b'{"type":7}', b"{", b"\xff"])
def test_a_line_that_is_no_event_is_left_out_and_what_else_is_said_counts(line: bytes) -> None:
    said = read(line, {"type": "result", "text": "x"})
    assert isinstance(said[0], Ignored)
    assert said[1:] == [Result("x")]


def test_an_agent_that_says_nothing_of_this_protocol_has_failed_and_is_not_silently_empty() -> None:
    said = read(b"plain body line", b'AGENT_PARTIAL:"x"')
    assert isinstance(said[-1], Error)
    assert 'protocol: "0.1"' in said[-1].message
    assert "plain body line" in said[-1].message


def test_an_agent_that_says_nothing_at_all_has_not_failed() -> None:
    assert read() == read(b"", b"  ") == []


def test_a_request_is_read_whole() -> None:
    event = {
        "type": "permission_request", "request_id": "r1", "tool_name": "Write", "input": {"a": 1},
        "description": "d", "tool_use_id": "t",
    }  # fmt: skip
    assert read(event) == [PermissionRequest("r1", "Write", {"a": 1}, "d", "t")]


@pytest.mark.parametrize("broken", [{"tool_name": 7}, {"input": "x"}, {"tool_name": ""}])
def test_a_malformed_request_that_can_be_answered_names_no_tool(broken: dict[str, Any]) -> None:
    event = {"type": "permission_request", "request_id": "r1", "tool_name": "Write", "input": {}}
    assert read(event | broken) == [PermissionRequest("r1", "", {})]


@pytest.mark.parametrize("request_id", [7, None, "", "a b", "a\nb", "x" * 1025])
def test_a_request_that_cannot_be_answered_has_no_id(request_id: Any) -> None:
    event = {"type": "permission_request", "request_id": request_id, "tool_name": "Write", "input": {}}
    assert read(event) == [PermissionRequest("", "", {})]


def test_a_line_over_the_limit_is_left_out_and_the_next_one_is_read() -> None:
    said = read(b"x" * (MAX_LINE + 1), {"type": "result", "text": "x"})
    assert isinstance(said[0], Ignored)
    assert said[1:] == [Result("x")]


@given(st.text(), st.text(min_size=1))
def test_what_an_agent_writes_is_read_back(text: str, tool: str) -> None:
    clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    reader = NdjsonReader()
    said = reader.feed(encode_partial(text) + encode_partial(text, "thinking") + encode_result(text, "s", {"n": 1}))
    assert said == [Partial(clean), Partial(clean, "thinking"), SessionId("s"), Result(clean, {"n": 1})]
    assert NdjsonReader().feed(encode_error(text)) == [Error(clean)]
    request = PermissionRequest("r1", tool.encode("utf-16", "replace").decode("utf-16"), {"a": [1, None]}, "d", "t")
    assert NdjsonReader().feed(encode_request(request)) == [request]


def test_a_turn_is_read_back() -> None:
    attachments = (Attachment("image", "u", "n"), Attachment("file", "v"))
    turn = TurnRequest("hi", "s1", "work", "ann", attachments=attachments, permission=True)
    assert decode_turn(encode_turn(turn)) == turn


def test_what_is_not_in_play_is_left_out_of_a_turn() -> None:
    assert json.loads(encode_turn(TurnRequest("hi"))) == {
        "type": "turn", "message": "hi", "session_id": "", "session_name": "default", "protocol_version": "0.4",
    }  # fmt: skip


@pytest.mark.parametrize(
    "line", [b"", b"x", b"[]", b'{"type":"other"}', b'{"type":"turn"}', b'{"type":"turn","message":7}']
)
def test_what_is_no_turn_is_refused(line: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        decode_turn(line)


def test_a_response_is_read_back_and_whatever_is_not_allowed_is_denied() -> None:
    response = PermissionResponse("r1", "allow", "m", {"a": 1})
    assert decode_response(encode_response(response)) == response
    assert decode_response(b'{"type":"permission_response","request_id":"r","behavior":"yes"}').behavior == "deny"
    for changed in (b"5", b'"rm x"', b"[]"):
        line = b'{"type":"permission_response","request_id":"r","behavior":"allow","updated_input":%s}' % changed
        assert decode_response(line).behavior == "deny"
    with pytest.raises(RemoteProtocolError):
        decode_response(b'{"type":"permission_response"}')


# A dialect that is not known


def test_the_first_event_makes_it_0_4_and_lines_before_it_are_noise() -> None:
    said = auto(b'banner\n{"type":"partial","text":"x"}\nnoise\n')
    assert [type(each) for each in said] == [Ignored, Partial, Ignored]


def test_the_first_prefix_makes_it_0_1_and_lines_before_it_are_the_reply() -> None:
    said = auto(b'one\nAGENT_PARTIAL:"x"\n{"type":"report"}\n')
    assert said == [Body("one"), Partial("x"), Body('{"type":"report"}')]


def test_plain_lines_alone_are_0_1() -> None:
    assert auto(b"one\ntwo") == [Body("one"), Body("two")]


@pytest.mark.slow
def test_blank_lines_take_room_too() -> None:
    reader = AutoReader()
    reader.feed(b"\n" * (MAX_HELD + 2))
    assert reader._held == []


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1" * 5000, "1e999"])
def test_bad_accounting_is_no_reason_to_miss_an_answer(number: str) -> None:
    said = read(f'{{"type":"result","text":"x","usage":{{"cost":{number},"input_tokens":3}}}}'.encode())
    assert [type(each) for each in said] == [Result]
    assert isinstance(said[0], Result)
    assert said[0].text == "x"


def test_half_a_character_in_a_message_is_replaced() -> None:
    assert json.loads(encode_turn(TurnRequest("a\udcff\ud800")))["message"] == "a\ufffd\ufffd"


def test_many_plain_lines_are_0_1_before_the_end() -> None:
    reader = AutoReader()
    assert reader.feed(b"x" * (MAX_HELD - 1) + b"\n") == []
    assert len(reader.feed(b"y\n")) == 2


@given(
    st.lists(st.sampled_from([b"plain", b"AGENT_SESSION:s", b'{"type":"result","text":"x"}', b""])), st.integers(1, 9)
)
def test_the_dialect_does_not_depend_on_how_the_bytes_are_cut(lines: list[bytes], size: int) -> None:
    data = b"\n".join(lines)
    reader = AutoReader()
    said: list[Said] = []
    for start in range(0, len(data), size):
        said += reader.feed(data[start : start + size])
    assert said + reader.finish() == auto(data)
