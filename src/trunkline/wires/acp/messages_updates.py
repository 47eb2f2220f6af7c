"""What an agent tells of a session while it goes on: the kinds of `session/update`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from trunkline.base.shapes import CamelCased, Tagged
from trunkline.wires.acp.messages_base import AcpNotification
from trunkline.wires.acp.messages_content import ContentBlock, ToolCallContent, ToolCallLocation
from trunkline.wires.acp.messages_sessions import SessionConfigOption


class SessionUpdate(Tagged):
    """Something that happened in a session."""

    tag_member: ClassVar[str] = "sessionUpdate"


class UserMessageChunk(SessionUpdate):
    """A piece of what the user said: when a session is loaded, or by another of its clients."""

    tag: ClassVar[str | None] = "user_message_chunk"

    content: ContentBlock
    message_id: str | None = None


class AgentMessageChunk(SessionUpdate):
    """A piece of the answer."""

    tag: ClassVar[str | None] = "agent_message_chunk"

    content: ContentBlock
    message_id: str | None = None


class AgentThoughtChunk(SessionUpdate):
    """A piece of the model's reasoning."""

    tag: ClassVar[str | None] = "agent_thought_chunk"

    content: ContentBlock
    message_id: str | None = None


class ToolCallStart(SessionUpdate):
    """A tool call, for the first time. Its members are those of `ToolCallUpdate`."""

    tag: ClassVar[str | None] = "tool_call"

    tool_call_id: str
    title: str = ""
    kind: str | None = None
    status: str | None = None
    content: tuple[ToolCallContent, ...] | None = None
    locations: tuple[ToolCallLocation, ...] | None = None
    raw_input: Any = None
    raw_output: Any = None
    meta: Mapping[str, Any] | None = None


class ToolCallProgress(SessionUpdate):
    """News of a tool call. Its members are those of `ToolCallUpdate`."""

    tag: ClassVar[str | None] = "tool_call_update"

    tool_call_id: str
    title: str | None = None
    kind: str | None = None
    status: str | None = None
    content: tuple[ToolCallContent, ...] | None = None
    locations: tuple[ToolCallLocation, ...] | None = None
    raw_input: Any = None
    raw_output: Any = None
    meta: Mapping[str, Any] | None = None


class PlannedTask(CamelCased):
    """One entry of a plan. Priority: high, medium or low. Status: pending, in_progress or completed."""

    content: str
    priority: str = "medium"
    status: str = "pending"


class PlanUpdate(SessionUpdate):
    """The agent's plan, whole: it takes the place of the one before."""

    tag: ClassVar[str | None] = "plan"

    entries: tuple[PlannedTask, ...]


class CommandInput(CamelCased):
    """What a command wants to be told."""

    hint: str


class AvailableCommand(CamelCased):
    """A command that the user may begin a message with, after a slash."""

    name: str
    description: str = ""
    input: CommandInput | None = None


class AvailableCommandsUpdate(SessionUpdate):
    """The commands that there are."""

    tag: ClassVar[str | None] = "available_commands_update"

    available_commands: tuple[AvailableCommand, ...]


class CurrentModeUpdate(SessionUpdate):
    """The session's mode has changed."""

    tag: ClassVar[str | None] = "current_mode_update"

    current_mode_id: str


class ConfigOptionUpdate(SessionUpdate):
    """The session's options, all of them."""

    tag: ClassVar[str | None] = "config_option_update"

    config_options: tuple[SessionConfigOption, ...]


class SessionInfoUpdate(SessionUpdate):
    """What a list of sessions shows of this one."""

    tag: ClassVar[str | None] = "session_info_update"

    title: str | None = None
    updated_at: str | None = None


class MoneySpent(CamelCased):
    """What a session has cost."""

    amount: float
    currency: str


class UsageUpdate(SessionUpdate):
    """How much of the model's context window is used, of how many tokens."""

    tag: ClassVar[str | None] = "usage_update"

    used: int
    size: int
    cost: MoneySpent | None = None


class OtherUpdate(SessionUpdate):
    """What newer agents tell."""

    raw: Mapping[str, Any]


SessionUpdate.otherwise = OtherUpdate


class SessionNotification(AcpNotification):
    """Something that happened in a session."""

    method: ClassVar[str] = "session/update"

    session_id: str
    update: SessionUpdate
    meta: Mapping[str, Any] | None = None
