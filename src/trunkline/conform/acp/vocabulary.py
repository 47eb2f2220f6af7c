"""The words of version 1 of the protocol, as its schema has them. Not those of our own wire, which is tested, too."""

from __future__ import annotations

PROTOCOL_VERSION = 1

# What JSON-RPC 2.0 and the protocol call errors.
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
AUTH_REQUIRED = -32000

STOP_REASONS = frozenset(("end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"))
OPTION_KINDS = frozenset(("allow_once", "allow_always", "reject_once", "reject_always"))
TOOL_KINDS = frozenset(
    ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other")
)
TOOL_STATUSES = frozenset(("pending", "in_progress", "completed", "failed"))
FINAL_STATUSES = frozenset(("completed", "failed"))
PRIORITIES = frozenset(("high", "medium", "low"))
ENTRY_STATUSES = frozenset(("pending", "in_progress", "completed"))

#: What the agent says and does in a turn.
MESSAGE_CHUNK, THOUGHT_CHUNK, USER_CHUNK = "agent_message_chunk", "agent_thought_chunk", "user_message_chunk"
CHUNKS = frozenset((MESSAGE_CHUNK, THOUGHT_CHUNK, USER_CHUNK))
TOOL_CALL, TOOL_CALL_UPDATE = "tool_call", "tool_call_update"
#: Those belong to a turn; the others may come at any time.
TURN_UPDATES = CHUNKS | {TOOL_CALL, TOOL_CALL_UPDATE, "plan"}
UPDATES = TURN_UPDATES | {
    "plan_update", "plan_removed", "available_commands_update", "current_mode_update", "config_option_update",
    "session_info_update", "usage_update",
}  # fmt: skip

#: The members that a content block must have, all of them strings, and the one that is an object.
BLOCKS = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("name", "uri"),
    "resource": (),
}
