"""The vocabulary of the JSON stream: what an agent says (events) and what its host says (commands).

Section numbers are those of the protocol document, version 0.1.0. Messages marked *dialect* are not in it: newer hosts
send them, and they are answered in kind, but never sent to a host that did not ask.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from trunkline.base.values import Value
from trunkline.base.vocabulary import ImageInput, Mode
from trunkline.core.events import Category, OutputType
from trunkline.core.fault_table import JsonStreamCode
from trunkline.core.usage import Usage

PROTOCOL_VERSION = "0.1.0"

Transport = Literal["stdio", "sse", "streamable-http", "streamable_http"]


class Message(Value):
    """Base of all lines. `type` is the member of that name."""

    type: ClassVar[str]


class Event(Message):
    """What an agent writes to its standard output."""


class Command(Message):
    """What a host writes to an agent's standard input."""


class Capabilities(Value):
    """What the agent can do. All but the first three are the dialect's; older agents leave them out."""

    tool_approval: bool
    thinking: bool
    mcp: bool
    image_input: ImageInput | None = None
    effort: bool | None = None
    effort_levels: tuple[str, ...] | None = None
    modes: tuple[Mode, ...] | None = None
    current_mode: Mode | None = None
    steering: bool | None = None
    """Whether a message with `when` `steer` joins the answer under way."""
    sandbox: Literal["on", "off"] | None = None


class Ready(Event):
    """1.1: initialisation is done. Once, and first."""

    type = "ready"

    version: str
    capabilities: Capabilities
    session_id: str | None = None


class StreamStart(Event):
    """1.2: a message is being answered."""

    type = "stream_start"

    msg_id: str


class TextDelta(Event, hot=True):
    """1.3: a piece of the answer."""

    type = "text_delta"

    text: str
    msg_id: str


class Thinking(Event):
    """1.4: a piece of the model's reasoning."""

    type = "thinking"

    text: str
    msg_id: str


class ToolDetails(Value):
    """The tool call that a `tool_request` is about."""

    name: str
    category: Category
    args: Mapping[str, Any]
    description: str


class ToolRequest(Event):
    """1.5: the agent waits for `tool_approve` or `tool_deny`."""

    type = "tool_request"

    msg_id: str
    call_id: str
    tool: ToolDetails


class ToolRunning(Event):
    """1.6: a tool has started."""

    type = "tool_running"

    msg_id: str
    call_id: str
    tool_name: str


class ToolResult(Event):
    """1.7: a tool has ended."""

    type = "tool_result"

    msg_id: str
    call_id: str
    tool_name: str
    status: Literal["success", "error"]
    output: str
    output_type: OutputType
    metadata: Mapping[str, Any] | None = None


class ToolCancelled(Event):
    """1.8: a tool was denied or stopped. No `tool_result` follows."""

    type = "tool_cancelled"

    msg_id: str
    call_id: str
    reason: str


class StreamEnd(Event):
    """1.9: the answer is over. `usage` is this message's, left out when nobody knows it."""

    type = "stream_end"

    msg_id: str
    usage: Usage | None = None


class ErrorBody(Value):
    """What went wrong."""

    code: JsonStreamCode
    message: str
    retryable: bool


class Error(Event):
    """1.10: something went wrong. `msg_id` is null when it belongs to no message."""

    type = "error"

    msg_id: str | None
    error: ErrorBody


class Info(Event):
    """1.11: for display only. `msg_id` is empty when it belongs to no message."""

    type = "info"

    msg_id: str
    message: str


class Pong(Event):
    """Dialect: the answer to `ping`."""

    type = "pong"


class ConfigChanged(Event):
    """Dialect: what the agent can do now, after `set_config` and `set_mode`."""

    type = "config_changed"

    capabilities: Capabilities


class McpReady(Event):
    """Dialect: an MCP server is connected."""

    type = "mcp_ready"

    name: str
    tools: tuple[str, ...]


class UserMessage(Command):
    """2.1: answer this. Newer hosts write `content` for `input`."""

    type = "message"

    msg_id: str
    input: str
    files: tuple[str, ...] = ()
    when: Literal["queue", "steer"] | None = None
    """What becomes of it while another is being answered: it waits, or joins that answer."""


class Stop(Command):
    """2.2: abort the current answer."""

    type = "stop"


class ToolApprove(Command):
    """2.3: run it."""

    type = "tool_approve"

    call_id: str
    scope: Literal["once", "always"] = "once"


class ToolDeny(Command):
    """2.4: do not run it."""

    type = "tool_deny"

    call_id: str
    reason: str = ""


class InitHistory(Command):
    """2.5: what was said before. Sent late, it is context of the next message."""

    type = "init_history"

    text: str


class SetMode(Command):
    """2.6: change the approval mode."""

    type = "set_mode"

    mode: Mode


class SetConfig(Command):
    """Dialect: change model options between turns."""

    type = "set_config"

    model: str | None = None
    thinking: str | None = None
    thinking_budget: int | None = None
    effort: str | None = None
    compaction: str | None = None
    image_input: str | None = None


class AddMcpServer(Command):
    """Dialect: connect one more MCP server."""

    type = "add_mcp_server"

    name: str
    transport: Transport
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] | None = None
    url: str | None = None
    headers: Mapping[str, str] | None = None
    startup_timeout_ms: int | None = None
    deferred: bool | None = None


class Ping(Command):
    """Dialect: are you there? Answered at once, also in a turn."""

    type = "ping"


EVENTS: dict[str, type[Event]] = {
    kind.type: kind
    for kind in (
        Ready,
        StreamStart,
        TextDelta,
        Thinking,
        ToolRequest,
        ToolRunning,
        ToolResult,
        ToolCancelled,
        StreamEnd,
        Error,
        Info,
        Pong,
        ConfigChanged,
        McpReady,
    )
}

COMMANDS: dict[str, type[Command]] = {
    kind.type: kind
    for kind in (
        UserMessage,
        Stop,
        ToolApprove,
        ToolDeny,
        InitHistory,
        SetMode,
        SetConfig,
        AddMcpServer,
        Ping,
    )
}
