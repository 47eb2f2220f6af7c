"""How a connection begins: what both ends are, and can do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from trunkline.base.shapes import CamelCased, Tagged
from trunkline.wires.acp.messages_base import AcpRequest, AcpResult


class Implementation(CamelCased):
    """The name and version of a program."""

    name: str
    version: str = ""
    title: str | None = None


class FileSystemCapabilities(CamelCased):
    """What the agent may do with the client's files."""

    read_text_file: bool = False
    write_text_file: bool = False


class ClientCapabilities(CamelCased):
    """What the client does for an agent."""

    fs: FileSystemCapabilities = FileSystemCapabilities()
    terminal: bool = False


class PromptCapabilities(CamelCased):
    """What a prompt may hold besides text and links."""

    image: bool = False
    audio: bool = False
    embedded_context: bool = False


class McpCapabilities(CamelCased):
    """Which MCP servers can be handed in, besides programs."""

    http: bool = False
    sse: bool = False


class Offered(CamelCased):
    """That something is there."""


class SessionCapabilities(CamelCased):
    """What can be done with sessions besides `session/new` and `session/load`."""

    list: Offered | None = None
    delete: Offered | None = None
    fork: Offered | None = None
    resume: Offered | None = None
    close: Offered | None = None


class AgentCapabilities(CamelCased):
    """What the agent can do."""

    load_session: bool = False
    prompt_capabilities: PromptCapabilities = PromptCapabilities()
    mcp_capabilities: McpCapabilities = McpCapabilities()
    session_capabilities: SessionCapabilities = SessionCapabilities()


class AuthMethod(Tagged):
    """A way to log in."""


class AuthVariable(CamelCased):
    """An environment variable that the agent wants to be started with."""

    name: str
    label: str | None = None
    secret: bool = True
    optional: bool = False


class EnvVarAuthMethod(AuthMethod):
    """The agent is started again with variables that the user has filled in."""

    tag: ClassVar[str | None] = "env_var"

    id: str
    name: str
    vars: tuple[AuthVariable, ...]
    description: str | None = None
    link: str | None = None


class TerminalAuthMethod(AuthMethod):
    """The agent's program is run in a terminal, with these arguments and variables."""

    tag: ClassVar[str | None] = "terminal"

    id: str
    name: str
    description: str | None = None
    args: tuple[str, ...] | None = None
    env: Mapping[str, str] | None = None


class AgentAuthMethod(AuthMethod):
    """The agent sees to it by itself; it is the one without a `type`."""

    id: str
    name: str
    description: str | None = None


AuthMethod.otherwise = AgentAuthMethod


class InitializeResponse(AcpResult):
    """What the agent is. `protocol_version` is the one that will be spoken."""

    protocol_version: int
    agent_capabilities: AgentCapabilities = AgentCapabilities()
    auth_methods: tuple[AuthMethod, ...] = ()
    agent_info: Implementation | None = None


class InitializeRequest(AcpRequest):
    """What the client is. `protocol_version` is the latest that it speaks."""

    method: ClassVar[str] = "initialize"
    result: ClassVar[type[AcpResult]] = InitializeResponse

    protocol_version: int
    client_capabilities: ClientCapabilities = ClientCapabilities()
    client_info: Implementation | None = None


class AuthenticateRequest(AcpRequest):
    """Log in, by one of the methods of `initialize`."""

    method: ClassVar[str] = "authenticate"

    method_id: str
