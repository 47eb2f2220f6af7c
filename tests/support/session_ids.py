"""Ids of AgentProc sessions: what can be one, and what cannot."""

from __future__ import annotations

from trunkline.wires.agentproc.codec import MAX_SESSION_ID

#: Any script, and all of ASCII's signs but three.
SESSION_IDS = (
    "s1", "séance", "会话-7", "сессия", "می\u200cخواهم", "🜁", "a+b!@#$%^&*()[]{}|\"'<>,.?;=_~-", "a..b", "...",
    "é" * MAX_SESSION_ID,
)  # fmt: skip

NO_SESSION_IDS = (
    "has space", "a\u00a0b", "a\u2028b", "a\u3000b", "tab\tin", "a\x00b", "a\x1bb", "a\x85b", "bad:id", "a/b", "/",
    "../x", "a\\b", ".", "..", "x" * (MAX_SESSION_ID + 1),
)  # fmt: skip
