"""Every JSON example of the protocol document, sections 1, 2 and 4, as data."""

from __future__ import annotations

from typing import Any

Line = dict[str, Any]

EVENTS: tuple[Line, ...] = (
    {
        "type": "ready",
        "version": "0.1.0",
        "session_id": "a1b2c3",
        "capabilities": {"tool_approval": True, "thinking": True, "mcp": True},
    },
    {"type": "stream_start", "msg_id": "abc-123"},
    {"type": "text_delta", "text": "Hello, ", "msg_id": "abc-123"},
    {"type": "thinking", "text": "Let me analyze the code structure...", "msg_id": "abc-123"},
    {
        "type": "tool_request",
        "msg_id": "abc-123",
        "call_id": "tool-call-001",
        "tool": {
            "name": "Write",
            "category": "edit",
            "args": {"file_path": "/src/main.rs", "content": "fn main() { ... }"},
            "description": "Write to /src/main.rs",
        },
    },
    {"type": "tool_running", "msg_id": "abc-123", "call_id": "tool-call-001", "tool_name": "Write"},
    {
        "type": "tool_result",
        "msg_id": "abc-123",
        "call_id": "tool-call-001",
        "tool_name": "Write",
        "status": "success",
        "output": "File written successfully",
        "output_type": "text",
    },
    {
        "type": "tool_result",
        "msg_id": "abc-123",
        "call_id": "tool-call-002",
        "tool_name": "Edit",
        "status": "success",
        "output": "--- a/src/main.rs\n+++ b/src/main.rs\n@@ -1,3 +1,3 @@\n-old line\n+new line",
        "output_type": "diff",
        "metadata": {"file_path": "/src/main.rs"},
    },
    {"type": "tool_cancelled", "msg_id": "abc-123", "call_id": "tool-call-001", "reason": "User denied"},
    {
        "type": "stream_end",
        "msg_id": "abc-123",
        "usage": {"input_tokens": 1500, "output_tokens": 320, "cache_read_tokens": 800, "cache_write_tokens": 200},
    },
    {
        "type": "error",
        "msg_id": "abc-123",
        "error": {"code": "provider_error", "message": "Rate limit exceeded", "retryable": True},
    },
    {"type": "info", "msg_id": "abc-123", "message": "Stream interrupted, retrying... (1/2)"},
    {
        "type": "error",
        "msg_id": None,
        "error": {"code": "protocol_error", "message": "Unknown command type: foo", "retryable": False},
    },
    {
        "type": "error",
        "msg_id": "m3",
        "error": {"code": "provider_error", "message": "Rate limit exceeded. Retry after 30s.", "retryable": True},
    },
    {
        "type": "error",
        "msg_id": None,
        "error": {"code": "config_error", "message": "ANTHROPIC_API_KEY not set", "retryable": False},
    },
)

COMMANDS: tuple[Line, ...] = (
    {
        "type": "message",
        "msg_id": "abc-123",
        "input": "Read the file src/main.rs and explain the code",
        "files": ["/path/to/attached/file.png"],
    },
    {"type": "stop"},
    {"type": "tool_approve", "call_id": "tool-call-001", "scope": "once"},
    {"type": "tool_deny", "call_id": "tool-call-001", "reason": "Not allowed to write this file"},
    {
        "type": "init_history",
        "text": "Previous conversation summary:\nUser asked about X...\nAssistant replied with Y...",
    },
    {"type": "set_mode", "mode": "yolo"},
)
