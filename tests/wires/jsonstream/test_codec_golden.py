"""Every JSON example of the protocol document, as the two ends of ours read and write it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trunkline.core.usage import Usage
from trunkline.wires.jsonstream import codec, messages
from trunkline.wires.jsonstream.messages import COMMANDS, EVENTS, Command, Event

DIFF = "--- a/src/main.rs\n+++ b/src/main.rs\n@@ -1,3 +1,3 @@\n-old line\n+new line"
CODE = {"file_path": "/src/main.rs", "content": "fn main() { ... }"}

#: Section, example, meaning. The document spreads its examples over several lines; on the wire each is one.
EVENT_EXAMPLES: list[tuple[str, str, Event]] = [
    (
        "1.1",
        """{
          "type": "ready",
          "version": "0.1.0",
          "session_id": "a1b2c3",
          "capabilities": {"tool_approval": true, "thinking": true, "mcp": true}
        }""",
        messages.Ready("0.1.0", messages.Capabilities(True, True, True), "a1b2c3"),
    ),
    ("1.2", """{"type": "stream_start", "msg_id": "abc-123"}""", messages.StreamStart("abc-123")),
    (
        "1.3",
        """{"type": "text_delta", "text": "Hello, ", "msg_id": "abc-123"}""",
        messages.TextDelta("Hello, ", "abc-123"),
    ),
    (
        "1.4",
        """{"type": "thinking", "text": "Let me analyze the code structure...", "msg_id": "abc-123"}""",
        messages.Thinking("Let me analyze the code structure...", "abc-123"),
    ),
    (
        "1.5",
        """{
          "type": "tool_request",
          "msg_id": "abc-123",
          "call_id": "tool-call-001",
          "tool": {
            "name": "Write",
            "category": "edit",
            "args": {"file_path": "/src/main.rs", "content": "fn main() { ... }"},
            "description": "Write to /src/main.rs"
          }
        }""",
        messages.ToolRequest(
            "abc-123", "tool-call-001", messages.ToolDetails("Write", "edit", CODE, "Write to /src/main.rs")
        ),
    ),
    (
        "1.6",
        """{"type": "tool_running", "msg_id": "abc-123", "call_id": "tool-call-001", "tool_name": "Write"}""",
        messages.ToolRunning("abc-123", "tool-call-001", "Write"),
    ),
    (
        "1.7",
        """{
          "type": "tool_result",
          "msg_id": "abc-123",
          "call_id": "tool-call-001",
          "tool_name": "Write",
          "status": "success",
          "output": "File written successfully",
          "output_type": "text"
        }""",
        messages.ToolResult("abc-123", "tool-call-001", "Write", "success", "File written successfully", "text"),
    ),
    (
        "1.7, a diff",
        r"""{
          "type": "tool_result",
          "msg_id": "abc-123",
          "call_id": "tool-call-002",
          "tool_name": "Edit",
          "status": "success",
          "output": "--- a/src/main.rs\n+++ b/src/main.rs\n@@ -1,3 +1,3 @@\n-old line\n+new line",
          "output_type": "diff",
          "metadata": {"file_path": "/src/main.rs"}
        }""",
        messages.ToolResult("abc-123", "tool-call-002", "Edit", "success", DIFF, "diff", {"file_path": "/src/main.rs"}),
    ),
    (
        "1.8",
        """{"type": "tool_cancelled", "msg_id": "abc-123", "call_id": "tool-call-001", "reason": "User denied"}""",
        messages.ToolCancelled("abc-123", "tool-call-001", "User denied"),
    ),
    (
        "1.9",
        """{
          "type": "stream_end",
          "msg_id": "abc-123",
          "usage": {
            "input_tokens": 1500, "output_tokens": 320, "cache_read_tokens": 800, "cache_write_tokens": 200
          }
        }""",
        messages.StreamEnd("abc-123", Usage(1500, 320, 800, 200)),
    ),
    (
        "1.10",
        """{
          "type": "error",
          "msg_id": "abc-123",
          "error": {"code": "provider_error", "message": "Rate limit exceeded", "retryable": true}
        }""",
        messages.Error("abc-123", messages.ErrorBody("provider_error", "Rate limit exceeded", True)),
    ),
    (
        "1.11",
        """{"type": "info", "msg_id": "abc-123", "message": "Stream interrupted, retrying... (1/2)"}""",
        messages.Info("abc-123", "Stream interrupted, retrying... (1/2)"),
    ),
    (
        "4.1",
        """{
          "type": "error",
          "msg_id": null,
          "error": {"code": "protocol_error", "message": "Unknown command type: foo", "retryable": false}
        }""",
        messages.Error(None, messages.ErrorBody("protocol_error", "Unknown command type: foo", False)),
    ),
    (
        "4.2",
        """{
          "type": "error",
          "msg_id": "m3",
          "error": {
            "code": "provider_error", "message": "Rate limit exceeded. Retry after 30s.", "retryable": true
          }
        }""",
        messages.Error("m3", messages.ErrorBody("provider_error", "Rate limit exceeded. Retry after 30s.", True)),
    ),
    (
        "4.3",
        """{
          "type": "error",
          "msg_id": null,
          "error": {"code": "config_error", "message": "ANTHROPIC_API_KEY not set", "retryable": false}
        }""",
        messages.Error(None, messages.ErrorBody("config_error", "ANTHROPIC_API_KEY not set", False)),
    ),
]

HISTORY = "Previous conversation summary:\nUser asked about X...\nAssistant replied with Y..."

COMMAND_EXAMPLES: list[tuple[str, str, Command]] = [
    (
        "2.1",
        """{
          "type": "message",
          "msg_id": "abc-123",
          "input": "Read the file src/main.rs and explain the code",
          "files": ["/path/to/attached/file.png"]
        }""",
        messages.UserMessage(
            "abc-123", "Read the file src/main.rs and explain the code", ("/path/to/attached/file.png",)
        ),
    ),
    ("2.2", """{"type": "stop"}""", messages.Stop()),
    (
        "2.3",
        """{"type": "tool_approve", "call_id": "tool-call-001", "scope": "once"}""",
        messages.ToolApprove("tool-call-001", "once"),
    ),
    (
        "2.4",
        """{"type": "tool_deny", "call_id": "tool-call-001", "reason": "Not allowed to write this file"}""",
        messages.ToolDeny("tool-call-001", "Not allowed to write this file"),
    ),
    (
        "2.5",
        r"""{
          "type": "init_history",
          "text": "Previous conversation summary:\nUser asked about X...\nAssistant replied with Y..."
        }""",
        messages.InitHistory(HISTORY),
    ),
    ("2.6", """{"type": "set_mode", "mode": "yolo"}""", messages.SetMode("yolo")),
]

#: Not in the document: newer hosts and agents only.
DIALECT = {"pong", "config_changed", "mcp_ready", "ping", "set_config", "add_mcp_server"}


def on_one_line(example: str) -> bytes:
    return json.dumps(json.loads(example)).encode() + b"\n"


def ids(examples: list[tuple[str, str, Any]]) -> list[str]:
    return [section for section, _, _ in examples]


@pytest.mark.parametrize(("section", "example", "event"), EVENT_EXAMPLES, ids=ids(EVENT_EXAMPLES))
def test_a_host_reads_the_event_of_the_document(section: str, example: str, event: Event) -> None:
    assert codec.EventReader().feed(on_one_line(example)) == [event]


@pytest.mark.parametrize(("section", "example", "command"), COMMAND_EXAMPLES, ids=ids(COMMAND_EXAMPLES))
def test_an_agent_reads_the_command_of_the_document(section: str, example: str, command: Command) -> None:
    assert codec.CommandReader().feed(on_one_line(example)) == [command]


@pytest.mark.parametrize(
    ("section", "example", "message"),
    [*EVENT_EXAMPLES, *COMMAND_EXAMPLES],
    ids=[*ids(EVENT_EXAMPLES), *ids(COMMAND_EXAMPLES)],
)
def test_what_we_write_has_the_members_and_values_of_the_document(
    section: str, example: str, message: Event | Command
) -> None:
    line = codec.encode(message)
    assert json.loads(line) == json.loads(example)
    assert next(iter(json.loads(line))) == "type"


def test_the_document_has_an_example_of_every_message_that_is_not_dialect() -> None:
    shown = {message.type for _, _, message in [*EVENT_EXAMPLES, *COMMAND_EXAMPLES]}
    assert shown == {*EVENTS, *COMMANDS} - DIALECT


def test_pong_is_exactly_what_hosts_expect() -> None:
    assert codec.encode(messages.Pong()) == b'{"type":"pong"}\n'


def test_optional_members_are_left_out_and_null_is_written_where_the_document_writes_it() -> None:
    assert codec.encode(messages.StreamEnd("m")) == b'{"type":"stream_end","msg_id":"m"}\n'
    assert codec.encode(messages.StreamEnd("m", Usage(0, 0))) == (
        b'{"type":"stream_end","msg_id":"m","usage":{"input_tokens":0,"output_tokens":0}}\n'
    )
    body = messages.ErrorBody("internal_error", "x", False)
    assert codec.encode(messages.Error(None, body)).startswith(b'{"type":"error","msg_id":null,')
