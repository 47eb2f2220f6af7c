"""The schema describes what the wire accepts and sends: no more, no less."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.support.document_examples import COMMANDS, EVENTS
from trunkline.core.faults import RemoteProtocolError
from trunkline.demo.showcase import ShownLine, play
from trunkline.wires.jsonstream import codec, messages, schema
from trunkline.wires.line_schema import Direction

events = Draft202012Validator(schema.document("events"))
commands = Draft202012Validator(schema.document("commands"))
both = Draft202012Validator(schema.document("both"))


@pytest.mark.parametrize("direction", ["events", "commands", "both"])
def test_it_is_a_schema_of_the_dialect_it_names(direction: Direction) -> None:
    document = schema.document(direction)
    assert document["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
    assert document["$id"].startswith("urn:trunkline:schema:jsonstream:0.1.0")
    Draft202012Validator.check_schema(document)


def test_every_message_is_there_and_told_apart_by_its_type() -> None:
    definitions = schema.document()["$defs"]
    assert definitions.keys() == {*messages.EVENTS, *messages.COMMANDS, "event", "command"}
    for name in (*messages.EVENTS, *messages.COMMANDS):
        assert definitions[name]["properties"]["type"] == {"const": name}
        assert "type" in definitions[name]["required"]
    assert definitions["event"] == {"oneOf": [{"$ref": f"#/$defs/{name}"} for name in messages.EVENTS]}
    assert definitions["command"] == {"oneOf": [{"$ref": f"#/$defs/{name}"} for name in messages.COMMANDS]}


def test_a_direction_has_only_its_own_messages() -> None:
    assert schema.document("events")["$defs"].keys() == {*messages.EVENTS, "event"}
    assert schema.document("commands")["$defs"].keys() == {*messages.COMMANDS, "command"}


def test_messages_that_are_not_in_the_document_are_marked_and_the_others_cite_their_section() -> None:
    definitions = schema.document()["$defs"]
    dialect = {name for name, definition in definitions.items() if definition.get("x-dialect")}
    assert dialect == {"pong", "config_changed", "mcp_ready", "set_config", "add_mcp_server", "ping"}
    cited = {name: definition["x-section"] for name, definition in definitions.items() if "x-section" in definition}
    assert cited.keys() == definitions.keys() - dialect - {"event", "command"}
    assert (cited["ready"], cited["info"], cited["message"], cited["set_mode"]) == ("1.1", "1.11", "2.1", "2.6")


@pytest.mark.parametrize("line", EVENTS, ids=lambda line: line["type"])
def test_every_event_of_the_protocol_document_is_valid(line: dict[str, Any]) -> None:
    events.validate(line)
    both.validate(line)
    assert not commands.is_valid(line)


@pytest.mark.parametrize("line", COMMANDS, ids=lambda line: line["type"])
def test_every_command_of_the_protocol_document_is_valid(line: dict[str, Any]) -> None:
    commands.validate(line)
    both.validate(line)
    assert not events.is_valid(line)


@pytest.mark.parametrize("line", [*EVENTS, *COMMANDS], ids=lambda line: line["type"])
def test_an_example_without_one_of_its_members_is_valid_only_if_that_may_be_absent(line: dict[str, Any]) -> None:
    kind: type[messages.Message] = (messages.EVENTS | messages.COMMANDS)[line["type"]]
    for member in line:
        rest = {name: value for name, value in line.items() if name != member}
        assert both.is_valid(rest) == (member in kind.__defaults__), member


@pytest.mark.parametrize(
    "line",
    [
        {"type": "message", "msg_id": "m1", "content": "hello"},
        {"type": "message", "msg_id": "m1", "input": None, "content": "hello"},
        {"type": "message", "msg_id": "m1", "input": "hello", "content": 7},
        {"type": "message", "msg_id": "m1", "input": "hello", "files": None},
        {"type": "message", "msg_id": "m1", "input": "hello", "from_a_newer_host": True},
    ],
)
def test_a_message_may_have_its_text_in_content_and_members_that_nobody_knows(line: dict[str, Any]) -> None:
    commands.validate(line)


@pytest.mark.parametrize(
    "line",
    [
        {},
        [],
        {"type": "foo"},
        {"type": "message", "msg_id": "m1"},
        {"type": "message", "msg_id": "", "input": "hello"},
        {"type": "message", "msg_id": "m1", "input": 7, "content": "hello"},
        {"type": "message", "msg_id": "m1", "content": None},
        {"type": "set_mode", "mode": "reckless"},
        {"type": "tool_approve", "call_id": "c", "scope": "sometimes"},
        {"type": "add_mcp_server", "name": "files", "transport": "pigeon"},
        {"type": "tool_result", "msg_id": "m", "call_id": "c", "tool_name": "t", "status": "ok", "output": ""},
        {"type": "error", "msg_id": None, "error": {"code": "engine_error", "message": "", "retryable": False}},
    ],
)
def test_what_is_wrong_is_not_valid(line: Any) -> None:
    assert not both.is_valid(line)


async def test_every_line_of_a_whole_conversation_is_valid_in_its_direction() -> None:
    crossed: list[ShownLine] = []
    await play(crossed.append)
    assert {line.by_host for line in crossed} == {True, False}
    for line in crossed:
        (commands if line.by_host else events).validate(json.loads(line.data))


_JUNK = st.sampled_from([None, True, 7, 1.5, "", "x", [], ["x"], [7], {}, {"x": "y"}, {"x": 7}, "once", "yolo", "sse"])


@st.composite
def almost_commands(draw: st.DrawFn) -> dict[str, Any]:
    """A command with some members as they should be, some not, some absent."""
    name = draw(st.sampled_from(sorted(messages.COMMANDS)))
    members = [*messages.COMMANDS[name].__fields__, *(["content"] if name == "message" else [])]
    return {"type": name} | {member: draw(_JUNK) for member in members if draw(st.booleans())}


@given(almost_commands())
def test_a_command_is_valid_exactly_if_an_agent_accepts_it(line: dict[str, Any]) -> None:
    try:
        codec.decode_command(json.dumps(line).encode())
    except RemoteProtocolError:
        assert not commands.is_valid(line)
    else:
        commands.validate(line)


def test_a_message_that_does_not_say_where_it_comes_from_cannot_be_described(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hum(messages.Event):
        """A hum."""

        type = "hum"

    monkeypatch.setitem(messages.EVENTS, "hum", Hum)
    with pytest.raises(TypeError, match="`Hum` does not begin with its section"):
        schema.document("events")
