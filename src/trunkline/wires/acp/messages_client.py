"""What an agent asks of its client: a decision of the user, the editor's files, its terminals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from trunkline.base.shapes import CamelCased, Tagged
from trunkline.wires.acp.messages_base import AcpRequest, AcpResult
from trunkline.wires.acp.messages_content import ToolCallUpdate
from trunkline.wires.acp.messages_sessions import NamedValue

PermissionKind = Literal["allow_once", "allow_always", "reject_once", "reject_always"]


class PermissionOption(CamelCased):
    """An answer that the user may give. `kind` is a `PermissionKind`, but for agents that are newer than this."""

    option_id: str
    name: str
    kind: str


class PermissionOutcome(Tagged):
    """What became of the question."""

    tag_member: ClassVar[str] = "outcome"


class OptionSelected(PermissionOutcome):
    """The user has chosen."""

    tag: ClassVar[str | None] = "selected"

    option_id: str


class PermissionCancelled(PermissionOutcome):
    """The turn was cancelled before the user had chosen."""

    tag: ClassVar[str | None] = "cancelled"


class RequestPermissionResponse(AcpResult):
    """The user's answer."""

    outcome: PermissionOutcome


class RequestPermissionRequest(AcpRequest):
    """Ask the user about a tool call."""

    method: ClassVar[str] = "session/request_permission"
    result: ClassVar[type[AcpResult]] = RequestPermissionResponse

    session_id: str
    tool_call: ToolCallUpdate
    options: tuple[PermissionOption, ...]
    meta: Mapping[str, Any] | None = None


class ReadTextFileResponse(AcpResult):
    """The text."""

    content: str


class ReadTextFileRequest(AcpRequest):
    """A text file as the editor has it, unsaved changes included. `line` counts from 1."""

    method: ClassVar[str] = "fs/read_text_file"
    result: ClassVar[type[AcpResult]] = ReadTextFileResponse

    session_id: str
    path: str
    line: int | None = None
    limit: int | None = None


class WriteTextFileRequest(AcpRequest):
    """Write a text file."""

    method: ClassVar[str] = "fs/write_text_file"

    session_id: str
    path: str
    content: str


class CreateTerminalResponse(AcpResult):
    """The terminal."""

    terminal_id: str


class CreateTerminalRequest(AcpRequest):
    """Run a command in a terminal of the client."""

    method: ClassVar[str] = "terminal/create"
    result: ClassVar[type[AcpResult]] = CreateTerminalResponse

    session_id: str
    command: str
    args: tuple[str, ...] = ()
    env: tuple[NamedValue, ...] = ()
    cwd: str | None = None
    output_byte_limit: int | None = None


class TerminalExitStatus(CamelCased):
    """How a command ended: by its exit code, or by a signal."""

    exit_code: int | None = None
    signal: str | None = None


class TerminalOutputResponse(AcpResult):
    """What the command has printed so far."""

    output: str
    truncated: bool = False
    exit_status: TerminalExitStatus | None = None


class TerminalOutputRequest(AcpRequest):
    """What the command has printed so far, without waiting."""

    method: ClassVar[str] = "terminal/output"
    result: ClassVar[type[AcpResult]] = TerminalOutputResponse

    session_id: str
    terminal_id: str


class WaitForTerminalExitResponse(AcpResult):
    """How the command ended."""

    exit_code: int | None = None
    signal: str | None = None


class WaitForTerminalExitRequest(AcpRequest):
    """Wait for the end of the command."""

    method: ClassVar[str] = "terminal/wait_for_exit"
    result: ClassVar[type[AcpResult]] = WaitForTerminalExitResponse

    session_id: str
    terminal_id: str


class KillTerminalRequest(AcpRequest):
    """End the command; its output can still be had."""

    method: ClassVar[str] = "terminal/kill"

    session_id: str
    terminal_id: str


class ReleaseTerminalRequest(AcpRequest):
    """End the command if it still runs, and forget the terminal."""

    method: ClassVar[str] = "terminal/release"

    session_id: str
    terminal_id: str
