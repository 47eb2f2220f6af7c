"""The codec of the JSON stream: what goes out comes back, and what is no protocol does no harm."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wires.jsonstream.strategies import commands, events, texts
from trunkline.core.faults import LocalProtocolError, RemoteProtocolError
from trunkline.wires.jsonstream import codec, messages
from trunkline.wires.jsonstream.codec import CommandReader, EventReader, Noise
from trunkline.wires.jsonstream.messages import Message

Reader = CommandReader | EventReader
READERS = [CommandReader, EventReader]

#: Small, so that Hypothesis finds its way around it.
LIMIT = 60

PING = b'{"type":"ping"}'
PONG = b'{"type":"pong"}'


def outcome(found: object) -> object:
    """A fault is no value: what counts of it is its text."""
    return str(found) if isinstance(found, RemoteProtocolError) else found


def read(reader: Reader, *chunks: bytes) -> list[object]:
    """All that a reader makes of a stream that ends after these chunks."""
    found: list[object] = []
    for chunk in chunks:
        found += reader.feed(chunk)
    return [outcome(each) for each in [*found, *reader.finish()]]


def only_command(line: bytes) -> object:
    """What an agent makes of one line, and nothing else."""
    (found,) = CommandReader().feed(line + b"\n")
    return found


def only_event(line: bytes) -> object:
    """What a host makes of one line, and nothing else."""
    (found,) = EventReader().feed(line + b"\n")
    return found


def fault(found: object) -> str:
    assert isinstance(found, RemoteProtocolError), found
    return str(found)


def line_of(**members: Any) -> bytes:
    return json.dumps(members).encode()


# There and back.


@given(commands)
def test_every_command_comes_back_as_it_was(command: messages.Command) -> None:
    assert CommandReader().feed(codec.encode(command)) == [command]


@given(events)
def test_every_event_comes_back_as_it_was(event: messages.Event) -> None:
    assert EventReader().feed(codec.encode(event)) == [event]


@given(commands | events)
def test_a_message_is_one_line_of_utf8_with_its_type_first(message: Message) -> None:
    line = codec.encode(message)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    members = json.loads(line.decode("utf-8"))
    assert next(iter(members.items())) == ("type", message.type)
    assert line.startswith(b'{"type":"')


@given(st.sampled_from([messages.TextDelta, messages.Thinking]), texts, texts)
def test_the_short_way_for_text_writes_the_same_members_as_the_long_one(
    kind: type[messages.TextDelta] | type[messages.Thinking], text: str, msg_id: str
) -> None:
    line = codec.text_line(kind.type, text, msg_id)
    assert list(json.loads(line).items()) == [("type", kind.type), ("text", text), ("msg_id", msg_id)]
    assert list(json.loads(codec.encode(kind(text, msg_id))).items()) == list(json.loads(line).items())


def test_lone_surrogates_are_carried_both_ways() -> None:
    command = only_command(rb'{"type":"message","msg_id":"\udfff","input":"a\ud800b"}')
    assert command == messages.UserMessage("\udfff", "a\ud800b")
    assert EventReader().feed(codec.text_line("text_delta", "a\ud800b", "\udfff")) == [
        messages.TextDelta("a\ud800b", "\udfff")
    ]


def test_what_no_json_can_say_is_our_own_fault() -> None:
    with pytest.raises(LocalProtocolError, match="tool_result"):
        codec.encode(messages.ToolResult("m", "c", "t", "success", "", "text", {"when": object()}))


def test_numbers_that_json_cannot_say_are_written_as_null() -> None:
    tool = messages.ToolDetails("t", "exec", {"a": float("nan"), "b": [float("inf"), 1.5]}, "")
    assert json.loads(codec.encode(messages.ToolRequest("m", "c", tool)))["tool"]["args"] == {
        "a": None,
        "b": [None, 1.5],
    }


# How the bytes are cut.

_lines = st.one_of(
    (commands | events).map(lambda message: codec.encode(message)[:-1]),
    st.binary(max_size=LIMIT + 5),
    st.sampled_from(
        [b"", b" \r", PING, PONG, b"\xff", b'{"type":"new"}', b'{"type":"text_delta"}', b"x" * (LIMIT + 1)]
    ),
)
_streams = st.lists(_lines, max_size=6).map(b"\n".join)


@given(st.sampled_from(READERS), _streams, st.data())
def test_how_a_stream_is_cut_changes_nothing(kind: Callable[[int], Reader], stream: bytes, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    chunks = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert read(kind(LIMIT), *chunks) == read(kind(LIMIT), stream)


@given(st.sampled_from(READERS), _streams)
def test_a_stream_byte_by_byte_is_the_same_stream(kind: Callable[[int], Reader], stream: bytes) -> None:
    assert read(kind(LIMIT), *(stream[at : at + 1] for at in range(len(stream)))) == read(kind(LIMIT), stream)


@given(_streams)
def test_each_line_is_judged_by_itself(stream: bytes) -> None:
    alone = [found for line in stream.split(b"\n") for found in read(CommandReader(LIMIT), line)]
    assert read(CommandReader(LIMIT), stream) == alone
    assert len(alone) == sum(1 for line in stream.split(b"\n") if line.strip() or len(line) > LIMIT)


def test_a_last_command_may_lack_its_line_feed() -> None:
    reader = CommandReader()
    assert reader.feed(PING) == []
    assert reader.finish() == [messages.Ping()]
    assert reader.finish() == []


def test_an_event_that_was_cut_off_is_noise() -> None:
    assert read(EventReader(), b'{"type":"text_delta","te') == [Noise(b'{"type":"text_delta","te')]


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("blank", [b"\n", b"\r\n", b" \t\n"])
def test_blank_lines_are_passed_over(kind: Callable[[], Reader], blank: bytes) -> None:
    assert read(kind(), blank * 3) == []


@pytest.mark.parametrize(("kind", "line"), [(CommandReader, PING), (EventReader, PONG)])
@pytest.mark.parametrize("form", [b"%b\r\n", b"  %b\t\n", b"\xef\xbb\xbf%b\n"], ids=["CRLF", "white space", "BOM"])
def test_careless_line_ends_and_marks_do_not_matter(kind: Callable[[], Reader], line: bytes, form: bytes) -> None:
    assert [type(found) for found in kind().feed(form % line)] in ([messages.Ping], [messages.Pong])


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"])
def test_only_a_line_feed_ends_a_line(separator: str) -> None:
    text = f"one{separator}two"
    raw = json.dumps({"type": "message", "msg_id": "m", "input": text}, ensure_ascii=False).encode()
    assert only_command(raw) == messages.UserMessage("m", text)


# The longest line.


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("end", [b"\n", b""], ids=["line feed", "end of stream"])
def test_a_line_up_to_the_limit_is_read_and_one_byte_more_is_not(kind: Callable[[int], Reader], end: bytes) -> None:
    line = PING if kind is CommandReader else PONG
    for limit in (len(line) + 1, len(line)):
        assert read(kind(limit), line + end) in ([messages.Ping()], [messages.Pong()])
    assert read(kind(len(line) - 1), line + end) == [
        f"Line of {len(line)} bytes exceeds the limit of {len(line) - 1} bytes"
    ]


@given(st.sampled_from(READERS), st.integers(1, 3 * LIMIT), st.integers(1, LIMIT))
def test_after_a_line_over_the_limit_the_next_one_works(
    kind: Callable[[int], Reader], excess: int, chunk_size: int
) -> None:
    line = PING if kind is CommandReader else PONG
    stream = b"x" * (LIMIT + excess) + b"\n" + line + b"\n"
    chunks = [stream[at : at + chunk_size] for at in range(0, len(stream), chunk_size)]
    too_long, found = read(kind(LIMIT), *chunks)
    assert too_long == f"Line of {LIMIT + excess} bytes exceeds the limit of {LIMIT} bytes"
    assert found in (messages.Ping(), messages.Pong())


# What an agent does not take from its host.

BAD_COMMANDS = [
    (b"hello", "Malformed JSON: "),
    (b'{"type":"ping"', "Malformed JSON: "),
    (b'{"type":"ping"} {"type":"ping"}', "Malformed JSON: Extra data"),
    (b'{"type":"message","msg_id":"m","input":"\xff"}', "Malformed JSON: invalid UTF-8"),
    # An encoded surrogate: UTF-8 has none, only an escape can carry it.
    (b'{"type":"message","msg_id":"m","input":"\xed\xa0\x80"}', "Malformed JSON: invalid UTF-8"),
    (b'{"type":"message","msg_id":"m","input":"a\0b"}', "Malformed JSON: Invalid control character"),
    (b'{"type":"set_config","thinking_budget":NaN}', "Malformed JSON: `NaN` is not JSON"),
    (b'{"type":"set_config","thinking_budget":-Infinity}', "Malformed JSON: `-Infinity` is not JSON"),
    (b'{"type":"set_config","thinking_budget":1e999}', "Malformed JSON: the number 1e999 is too large"),
    (b'{"type":"set_config","thinking_budget":1%b}' % (b"0" * 5000), "Malformed JSON: a number has too many digits"),
    (b'{"type":"ping","x":%b%b}' % (b"[" * 200, b"]" * 200), "Malformed JSON: nested deeper than 200 levels"),
    (b"[" * 100_000, "Malformed JSON: nested deeper than 200 levels"),
    (b'{"a":' * 100_000, "Malformed JSON: nested deeper than 200 levels"),
    (b"null", "A command must be a JSON object"),
    (b'["ping"]', "A command must be a JSON object"),
    (b'"ping"', "A command must be a JSON object"),
    (b"{}", "`type` is missing"),
    (b'{"type":null}', "`type` is missing"),
    (b'{"type":["ping"]}', "`type` must be a string"),
    (b'{"type":"foo"}', "Unknown command type: foo"),
    (b'{"type":"pong"}', "Unknown command type: pong"),
    (b'{"type":"message","input":"i"}', "Invalid `message`: `msg_id` is missing"),
    (b'{"type":"message","msg_id":"","input":"i"}', "Invalid `message`: `msg_id` is empty"),
    (b'{"type":"message","msg_id":7,"input":"i"}', "Invalid `message`: `msg_id` must be a string, not a number"),
    (b'{"type":"message","msg_id":"m"}', "Invalid `message`: `input` is missing"),
    (b'{"type":"message","msg_id":"m","input":null}', "Invalid `message`: `input` must be a string, not null"),
    (b'{"type":"message","msg_id":"m","content":[]}', "Invalid `message`: `input` must be a string, not a list"),
    (b'{"type":"message","msg_id":"m","input":"i","files":"f"}', "Invalid `message`: `files` must be a list"),
    (b'{"type":"message","msg_id":"m","input":"i","files":[1]}', "Invalid `message`: `files.0` must be a string"),
    (b'{"type":"tool_approve"}', "Invalid `tool_approve`: `call_id` is missing"),
    (b'{"type":"tool_approve","call_id":"c","scope":"ever"}', "Invalid `tool_approve`: `scope` must be one of"),
    (b'{"type":"tool_deny","call_id":"c","reason":1}', "Invalid `tool_deny`: `reason` must be a string"),
    (b'{"type":"init_history"}', "Invalid `init_history`: `text` is missing"),
    (b'{"type":"set_mode","mode":"god"}', "Invalid `set_mode`: `mode` must be one of"),
    (b'{"type":"set_config","thinking_budget":true}', "Invalid `set_config`: `thinking_budget` must be an integer"),
    (b'{"type":"add_mcp_server","name":"n","transport":"fax"}', "Invalid `add_mcp_server`: `transport` must be one of"),
]


@pytest.mark.parametrize(("line", "complaint"), BAD_COMMANDS, ids=[text[:60] for _, text in BAD_COMMANDS])
def test_a_bad_command_is_one_fault_that_says_why_and_the_next_line_works(line: bytes, complaint: str) -> None:
    bad, good = CommandReader().feed(line + b"\n" + PING + b"\n")
    assert fault(bad).startswith(complaint)
    assert good == messages.Ping()


def test_a_fault_repeats_no_more_of_a_line_than_it_takes_to_recognise_it() -> None:
    long = "x" * 100_000
    for line in (
        line_of(type=long),
        line_of(type="set_mode", mode=long),
        line_of(type="add_mcp_server", name="n", transport="stdio", env={long: 1}),
        line_of(type="set_config", thinking_budget=1).replace(b"1", b"1" * 4000 + b"e999"),
        long.encode(),
    ):
        assert len(fault(only_command(line))) < 1000


# What an agent takes although the document does not say so.


@pytest.mark.parametrize(
    ("line", "command"),
    [
        (line_of(type="message", msg_id="m", content="i"), messages.UserMessage("m", "i")),
        (line_of(type="message", msg_id="m", content="new", input="old"), messages.UserMessage("m", "old")),
        (line_of(type="message", msg_id="m", content="i", input=None), messages.UserMessage("m", "i")),
        (line_of(type="message", msg_id="m", input=""), messages.UserMessage("m", "")),
        (line_of(type="message", msg_id="m", input="i", files=None), messages.UserMessage("m", "i")),
        (line_of(type="tool_approve", call_id="c"), messages.ToolApprove("c", "once")),
        (line_of(type="tool_approve", call_id="c", scope=None), messages.ToolApprove("c", "once")),
        (line_of(type="tool_deny", call_id="c"), messages.ToolDeny("c", "")),
        (line_of(type="stop", msg_id="m", why=[1, {}]), messages.Stop()),
        (b'{"type":"foo","type":"stop"}', messages.Stop()),
    ],
    ids=[
        "content",
        "both",
        "input null",
        "empty",
        "files null",
        "no scope",
        "null scope",
        "no reason",
        "more",
        "twice",
    ],
)
def test_an_agent_understands_every_dialect(line: bytes, command: messages.Command) -> None:
    assert only_command(line) == command


# What a host makes of programs that print what they like.


@pytest.mark.parametrize(
    "line",
    [
        b"Loading model...", b"null", b"42", b'["text_delta"]', b'"ready"', b"{}", b'{"type":null}', b'{"type":7}',
        b'{"level":"warn","msg":"deprecated"}', b"\xff\xfe", b'{"type":"pong"', b'{"type":"pong","x":NaN}',
        b'{"type":"pong","x":1e999}', b"[" * 5000, b'{"type":"pong"}}',
    ],
)  # fmt: skip
def test_a_line_that_is_no_json_object_with_a_type_is_noise(line: bytes) -> None:
    assert EventReader().feed(line + b"\r\n" + PONG + b"\n") == [Noise(line + b"\r"), messages.Pong()]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (line_of(type="text_delta", msg_id="m"), "Invalid `text_delta`: `text` is missing"),
        (line_of(type="text_delta", text=1, msg_id="m"), "Invalid `text_delta`: `text` must be a string, not a number"),
        (line_of(type="stream_end", msg_id=7), "Invalid `stream_end`: `msg_id` must be a string"),
        (line_of(type="tool_request", msg_id="m", call_id="c", tool={}),
         "Invalid `tool_request`: `tool.name` is missing"),
        (line_of(type="tool_request", msg_id="m", call_id="c", tool={"name": "t", "args": []}),
         "Invalid `tool_request`: `tool.args` must be an object"),
        (line_of(type="tool_result", msg_id="m"), "Invalid `tool_result`: `call_id` is missing"),
    ],
    ids=["missing", "type", "id", "no name", "args", "no call"],
)  # fmt: skip
def test_an_event_that_breaks_the_shape_of_its_type_is_a_fault_and_not_noise(line: bytes, complaint: str) -> None:
    bad, good = EventReader().feed(line + b"\n" + PONG + b"\n")
    assert fault(bad).startswith(complaint)
    assert good == messages.Pong()


def test_events_of_unknown_types_are_left_out() -> None:
    assert EventReader().feed(b'{"type":"hologram","msg_id":7}\n' + PONG + b"\n") == [messages.Pong()]


_NOTHING = messages.Capabilities(tool_approval=False, thinking=False, mcp=False)


@pytest.mark.parametrize(
    ("line", "event"),
    [
        (line_of(type="ready"), messages.Ready("0.1.0", _NOTHING)),
        (line_of(type="ready", version="9", capabilities={"mcp": True, "thinking": "very"}),
         messages.Ready("9", messages.Capabilities(False, False, True))),
        (line_of(type="config_changed", capabilities={}), messages.ConfigChanged(_NOTHING)),
        (line_of(type="error", error={}), messages.Error(None, messages.ErrorBody("internal_error", "", False))),
        (line_of(type="error", error={"code": "engine_error", "message": "boom"}),
         messages.Error(None, messages.ErrorBody("internal_error", "boom", False))),
        (line_of(type="info", message="hm"), messages.Info("", "hm")),
        (line_of(type="tool_running", msg_id="m", call_id="c"), messages.ToolRunning("m", "c", "")),
        (line_of(type="tool_result", msg_id="m", call_id="c"),
         messages.ToolResult("m", "c", "", "success", "", "text")),
        (line_of(type="tool_result", msg_id="m", call_id="c", output="o", output_type="video"),
         messages.ToolResult("m", "c", "", "success", "o", "text")),
        (line_of(type="tool_cancelled", msg_id="m", call_id="c"), messages.ToolCancelled("m", "c", "")),
        (line_of(type="tool_request", msg_id="m", call_id="c", tool={"name": "t", "category": "magic"}),
         messages.ToolRequest("m", "c", messages.ToolDetails("t", "exec", {}, ""))),
        (line_of(type="stream_end", msg_id="m"), messages.StreamEnd("m")),
        (line_of(type="stream_end", msg_id="m", usage=None, more=1), messages.StreamEnd("m")),
        (line_of(type="mcp_ready", name="n"), messages.McpReady("n", ())),
    ],
    ids=[
        "ready", "capabilities", "config_changed", "error", "error code", "info", "tool_running", "tool_result",
        "output type", "tool_cancelled", "tool category", "stream_end", "null usage", "mcp_ready",
    ],
)  # fmt: skip
def test_what_agents_leave_out_gets_its_safest_meaning(line: bytes, event: messages.Event) -> None:
    assert only_event(line) == event


def test_what_one_event_left_out_does_not_leak_into_the_next() -> None:
    line = line_of(type="tool_request", msg_id="m", call_id="c", tool={"name": "t"})
    first, second = only_event(line), only_event(line)
    assert isinstance(first, messages.ToolRequest)
    assert isinstance(second, messages.ToolRequest)
    assert first.tool.args is not second.tool.args


@pytest.mark.parametrize(
    ("line", "event"),
    [
        (line_of(type="stream_end", msg_id="m", usage="12"), messages.StreamEnd("m")),
        (line_of(type="stream_end", msg_id="m", usage={"input_tokens": "1", "output_tokens": 2.5}), None),
        (line_of(type="stream_end"), messages.StreamEnd("")),
        (line_of(type="stream_start", msg_id=None), messages.StreamStart("")),
        (line_of(type="text_delta", text="x"), messages.TextDelta("x", "")),
        (line_of(type="tool_running", call_id="t"), messages.ToolRunning("", "t", "")),
        (line_of(type="tool_cancelled", msg_id="m", call_id="t", reason=None), messages.ToolCancelled("m", "t", "")),
        (
            line_of(type="tool_result", msg_id="m", call_id="t", status="failed", output=None, output_type="html"),
            messages.ToolResult("m", "t", "", "error", "", "text"),
        ),
        (
            line_of(type="error", error="out of credit"),
            messages.Error(None, messages.ErrorBody("internal_error", "out of credit", False)),
        ),
        (
            line_of(type="error", error={"code": "engine_error", "message": None}),
            messages.Error(None, messages.ErrorBody("internal_error", "", False)),
        ),
        (
            line_of(type="ready", version=None, capabilities=None),
            messages.Ready("0.1.0", messages.Capabilities(False, False, False)),
        ),
        (
            line_of(type="ready", version=2, capabilities=["all"], session_id=None),
            messages.Ready("2", messages.Capabilities(False, False, False)),
        ),
    ],
)
def test_a_host_makes_the_best_of_what_agents_in_the_field_say(line: bytes, event: messages.Event | None) -> None:
    (heard,) = codec.EventReader().feed(line + b"\n")
    assert isinstance(heard, messages.Event)
    if event is not None:
        assert heard == event
