"""Judges see whatever a program chose to write."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from trunkline.conform.jsonstream.suite import SUITE
from trunkline.conform.record import Record

JUDGES = {id: judge for id in SUITE.checks if (judge := SUITE.judge_of(id)) is not None}

TYPES = ("ready", "stream_start", "text_delta", "thinking", "tool_request", "tool_running", "tool_result",
         "tool_cancelled", "stream_end", "error", "info", "pong", "message", "stop", "tool_approve")  # fmt: skip
junk = st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.lists(st.integers(), max_size=2))
ids = st.one_of(st.sampled_from(["m1", "m2", "c1", ""]), junk)
members = st.fixed_dictionaries(
    {},
    optional={
        "type": st.one_of(st.sampled_from(TYPES), junk),
        "msg_id": ids,
        "call_id": ids,
        "text": junk,
        "usage": st.one_of(junk, st.dictionaries(st.sampled_from(["input_tokens", "output_tokens"]), junk)),
        "tool": st.one_of(junk, st.dictionaries(st.sampled_from(["name", "category", "args", "description"]), ids)),
        "error": st.one_of(junk, st.dictionaries(st.sampled_from(["code", "message", "retryable"]), junk)),
        "output": junk,
        "output_type": st.one_of(st.sampled_from(["text", "image", "diff"]), junk),
        "metadata": junk,
    },
)
lines = st.one_of(members.map(lambda data: json.dumps(data).encode()), st.binary(max_size=20))


def parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


@given(st.lists(st.tuples(st.sampled_from(["host", "agent", "kit"]), lines), max_size=12), st.booleans())
def test_no_judge_stumbles_over_anything_that_a_program_may_write(said: list[tuple[Any, bytes]], killed: bool) -> None:
    record = Record("anything", ("target",))
    record.was_killed = killed
    for who, line in said:
        record.add(who, line, parsed(line))
    for judge in JUDGES.values():
        assert judge(record).looked_at >= 0


def said_by(*lines: dict[str, Any] | str) -> Record:
    """A record of commands (those whose type a host has) and events; a text is a line of the agent."""
    record = Record("made", ("target",))
    for line in lines:
        data = line if isinstance(line, dict) else None
        who: Any = "host" if data is not None and data["type"] in ("message", "stop", "tool_approve") else "agent"
        record.add(who, json.dumps(line).encode() if data is not None else str(line).encode(), data)
    return record


def problem(id: str, *lines: dict[str, Any] | str) -> str | None:
    return JUDGES[id](said_by(*lines)).problem


MESSAGE = {"type": "message", "msg_id": "m1", "input": "x"}
START = {"type": "stream_start", "msg_id": "m1"}
END = {"type": "stream_end", "msg_id": "m1"}


def test_a_message_that_a_stop_dropped_may_end_without_a_start() -> None:
    assert problem("js.turn.start-first", MESSAGE, {"type": "stop"}, END) is None
    assert problem("js.turn.start-first", MESSAGE, END) == "`stream_end` before `stream_start`"


def test_a_stopped_turn_may_leave_a_call_open() -> None:
    request = {"type": "tool_request", "msg_id": "m1", "call_id": "c1"}
    assert problem("js.tool.settled", MESSAGE, START, request, {"type": "stop"}, END) is None
    assert problem("js.tool.settled", MESSAGE, START, request, END) == "`stream_end` while the call `c1` is open"


def test_a_repeated_msg_id_has_as_many_ends_as_messages() -> None:
    turn = (MESSAGE, START, END)
    assert problem("js.turn.one-end", *turn, *turn) is None
    assert problem("js.turn.one-end", *turn, *turn, END) == "3 times `stream_end` for `m1`"
    assert problem("js.turn.nothing-after-end", *turn, *turn) is None


def test_an_info_outside_of_a_turn_needs_no_message() -> None:
    assert problem("js.turn.msg-id", {"type": "info", "msg_id": "", "message": "x"}) is None
    assert problem("js.turn.msg-id", {"type": "info", "msg_id": "m9", "message": "x"}) == "`info` has the `msg_id` 'm9'"


def test_what_the_kit_cut_off_is_not_held_against_the_agent() -> None:
    record = said_by(START)
    record.unfinished = b'{"ty'
    assert JUDGES["js.line.terminated"](record).problem is not None
    record.was_killed = True
    assert JUDGES["js.line.terminated"](record).problem is None
