"""The schema of AgentProc 0.4: what our ends write is valid, and what cannot be meant is not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.support.session_ids import NO_SESSION_IDS, SESSION_IDS
from trunkline.wires.agentproc import codec_ndjson as codec
from trunkline.wires.agentproc import schema
from trunkline.wires.agentproc.messages import Attachment, PermissionRequest, PermissionResponse, TurnRequest
from trunkline.wires.line_schema import Direction

events = Draft202012Validator(schema.document("events"))
commands = Draft202012Validator(schema.document("commands"))
both = Draft202012Validator(schema.document())

ASKED = PermissionRequest("permission-1", "Bash", {"command": "ls"}, "list files", "call-1")
EVENTS = [
    codec.encode_partial("a"),
    codec.encode_partial("hm", "thinking", "séance"),
    codec.encode_result("ab", "s1", {"input_tokens": 3, "cost_usd": 0.01, "other": [1]}),
    codec.encode_error("no", "s1", {"output_tokens": 3}),
    codec.encode_request(ASKED, "s1"),
]
COMMANDS = [
    codec.encode_turn(TurnRequest("hi")),
    codec.encode_turn(
        TurnRequest(
            "", "会话-7", "team", "ann", attachments=(Attachment("image", "file:///a.png", "a.png"),), permission=True
        )
    ),
    codec.encode_response(PermissionResponse("permission-1", "allow")),
    codec.encode_response(PermissionResponse("permission-1", "deny", "no", {"command": "pwd"})),
]


@pytest.mark.parametrize("direction", ["events", "commands", "both"])
def test_it_is_a_schema_of_the_dialect_it_names(direction: Direction) -> None:
    document = schema.document(direction)
    assert document["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
    assert document["$id"].startswith("urn:trunkline:schema:agentproc:0.4")
    Draft202012Validator.check_schema(document)


def test_every_event_of_the_protocol_is_there_under_its_type() -> None:
    definitions = schema.document("events")["$defs"]
    assert {name for name, each in definitions.items() if "title" in each} == codec.EVENT_TYPES
    assert {name for name, each in schema.document("commands")["$defs"].items() if "title" in each} == {
        "turn",
        "permission_response",
    }


@pytest.mark.parametrize("line", EVENTS)
def test_what_our_agents_write_is_an_event(line: bytes) -> None:
    events.validate(json.loads(line))
    both.validate(json.loads(line))
    assert not commands.is_valid(json.loads(line))


@pytest.mark.parametrize("line", COMMANDS)
def test_what_our_bridge_writes_is_a_command(line: bytes) -> None:
    commands.validate(json.loads(line))
    both.validate(json.loads(line))
    assert not events.is_valid(json.loads(line))


@pytest.mark.parametrize(
    "line",
    [
        {"type": "text", "text": "a"},
        {"type": "partial"},
        {"type": "result", "text": None},
        {"type": "error", "text": "a"},
        {"type": "permission_request", "request_id": "a b", "tool_name": "Bash", "input": {}},
        {"type": "permission_request", "request_id": "1", "tool_name": "Bash", "input": "ls"},
        {"type": "turn", "message": "hi"},
        {"type": "permission_response", "request_id": "1", "behavior": "yes"},
    ],
)
def test_what_cannot_be_meant_is_not_valid(line: dict[str, Any]) -> None:
    assert not both.is_valid(line)


@pytest.mark.parametrize("session", SESSION_IDS)
def test_an_id_that_counts_is_valid(session: str) -> None:
    events.validate({"type": "result", "text": "", "session_id": session})


@pytest.mark.parametrize("session", NO_SESSION_IDS)
def test_an_id_that_does_not_count_is_not_valid(session: str) -> None:
    assert not events.is_valid({"type": "result", "text": "", "session_id": session})
