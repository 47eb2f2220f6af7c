"""Requests to models, for those who look what becomes of them in a provider's format."""

from __future__ import annotations

from typing import Any

from trunkline.models.messages import Block, Message, Role, Text
from trunkline.models.model import Request, ToolSpec

READ = ToolSpec("Read", "reads", {"type": "object", "title": "t"})
BASH = ToolSpec("Bash", "runs", {"type": "object"})


def ask(*messages: Message, **more: Any) -> Request:
    return Request(list(messages), **more)


def say(role: Role, *blocks: Block | str) -> Message:
    return Message(role, tuple(Text(block) if isinstance(block, str) else block for block in blocks))
