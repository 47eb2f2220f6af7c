"""The vocabulary of the Agent Client Protocol, version 1: what a client asks of an agent, and all methods by name.

Names and shapes are those of the protocol's schema, 1.19. What it calls unstable is not here, but for what many speak:
forking, and telling how many tokens a prompt has used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from trunkline.base.shapes import CamelCased
from trunkline.wires.acp import messages_client as client
from trunkline.wires.acp.messages_base import AcpNotification, AcpRequest, AcpResult
from trunkline.wires.acp.messages_content import ContentBlock
from trunkline.wires.acp.messages_sessions import HandedMcpServer, ListedSession, SessionConfigOption, SessionModeState
from trunkline.wires.acp.messages_start import AuthenticateRequest, InitializeRequest
from trunkline.wires.acp.messages_updates import SessionNotification

StopReason = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]


class NewSessionResponse(AcpResult):
    """The session, and how it can be changed."""

    session_id: str
    modes: SessionModeState | None = None
    config_options: tuple[SessionConfigOption, ...] | None = None


class NewSessionRequest(AcpRequest):
    """Begin a session in a directory, which is an absolute path."""

    method: ClassVar[str] = "session/new"
    result: ClassVar[type[AcpResult]] = NewSessionResponse

    cwd: str
    mcp_servers: tuple[HandedMcpServer, ...] = ()
    meta: Mapping[str, Any] | None = None


class OpenedSessionResponse(AcpResult):
    """How a session that was there before can be changed."""

    modes: SessionModeState | None = None
    config_options: tuple[SessionConfigOption, ...] | None = None


class LoadSessionRequest(AcpRequest):
    """Go on with a session, and be told first what was said in it."""

    method: ClassVar[str] = "session/load"
    result: ClassVar[type[AcpResult]] = OpenedSessionResponse

    session_id: str
    cwd: str
    mcp_servers: tuple[HandedMcpServer, ...] = ()
    meta: Mapping[str, Any] | None = None


class ResumeSessionRequest(AcpRequest):
    """Go on with a session, of which the client knows what was said."""

    method: ClassVar[str] = "session/resume"
    result: ClassVar[type[AcpResult]] = OpenedSessionResponse

    session_id: str
    cwd: str
    mcp_servers: tuple[HandedMcpServer, ...] = ()
    meta: Mapping[str, Any] | None = None


class ForkSessionRequest(AcpRequest):
    """A new session that begins with all that was said in another one."""

    method: ClassVar[str] = "session/fork"
    result: ClassVar[type[AcpResult]] = NewSessionResponse

    session_id: str
    cwd: str
    mcp_servers: tuple[HandedMcpServer, ...] = ()
    meta: Mapping[str, Any] | None = None


class ListSessionsResponse(AcpResult):
    """Some sessions, newest first; with `next_cursor` there are more."""

    sessions: tuple[ListedSession, ...]
    next_cursor: str | None = None


class ListSessionsRequest(AcpRequest):
    """The sessions that there are, all or those of a directory."""

    method: ClassVar[str] = "session/list"
    result: ClassVar[type[AcpResult]] = ListSessionsResponse

    cwd: str | None = None
    cursor: str | None = None


class CloseSessionRequest(AcpRequest):
    """Leave a session: stop what it does. It can be loaded again."""

    method: ClassVar[str] = "session/close"

    session_id: str


class DeleteSessionRequest(AcpRequest):
    """Forget a session."""

    method: ClassVar[str] = "session/delete"

    session_id: str


class SetSessionModeRequest(AcpRequest):
    """Change a session's mode."""

    method: ClassVar[str] = "session/set_mode"

    session_id: str
    mode_id: str


class SetSessionConfigOptionResponse(AcpResult):
    """The session's options, all of them: one may have changed others."""

    config_options: tuple[SessionConfigOption, ...]


class SetSessionConfigOptionRequest(AcpRequest):
    """Change an option of a session. The value is text, or true or false."""

    method: ClassVar[str] = "session/set_config_option"
    result: ClassVar[type[AcpResult]] = SetSessionConfigOptionResponse

    session_id: str
    config_id: str
    value: Any


class PromptUsage(CamelCased):
    """The tokens that a prompt has used."""

    total_tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    thought_tokens: int | None = None
    cached_read_tokens: int | None = None
    cached_write_tokens: int | None = None


class PromptResponse(AcpResult):
    """The turn has ended. `stop_reason` is a `StopReason`, but for agents that are newer than this."""

    stop_reason: str
    usage: PromptUsage | None = None
    meta: Mapping[str, Any] | None = None


class PromptRequest(AcpRequest):
    """A message of the user's. The answer comes when the turn has ended."""

    method: ClassVar[str] = "session/prompt"
    result: ClassVar[type[AcpResult]] = PromptResponse

    session_id: str
    prompt: tuple[ContentBlock, ...]
    message_id: str | None = None
    meta: Mapping[str, Any] | None = None


class CancelNotification(AcpNotification):
    """Stop the turn. Its prompt is answered `cancelled`, and so are the questions that wait for the user."""

    method: ClassVar[str] = "session/cancel"

    session_id: str


#: What a client may ask of an agent.
AGENT_REQUESTS: Mapping[str, type[AcpRequest]] = {
    kind.method: kind
    for kind in (
        InitializeRequest,
        AuthenticateRequest,
        NewSessionRequest,
        LoadSessionRequest,
        ResumeSessionRequest,
        ForkSessionRequest,
        ListSessionsRequest,
        CloseSessionRequest,
        DeleteSessionRequest,
        SetSessionModeRequest,
        SetSessionConfigOptionRequest,
        PromptRequest,
    )
}

#: What a client may tell an agent.
AGENT_NOTIFICATIONS: Mapping[str, type[AcpNotification]] = {CancelNotification.method: CancelNotification}

#: What an agent may ask of a client.
CLIENT_REQUESTS: Mapping[str, type[AcpRequest]] = {
    kind.method: kind
    for kind in (
        client.RequestPermissionRequest,
        client.ReadTextFileRequest,
        client.WriteTextFileRequest,
        client.CreateTerminalRequest,
        client.TerminalOutputRequest,
        client.WaitForTerminalExitRequest,
        client.KillTerminalRequest,
        client.ReleaseTerminalRequest,
    )
}

#: What an agent may tell a client.
CLIENT_NOTIFICATIONS: Mapping[str, type[AcpNotification]] = {SessionNotification.method: SessionNotification}
