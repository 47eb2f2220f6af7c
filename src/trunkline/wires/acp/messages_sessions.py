"""What sessions are made with: tool servers, modes and options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from trunkline.base.shapes import CamelCased, Tagged


class NamedValue(CamelCased):
    """An environment variable, or a header of HTTP."""

    name: str
    value: str


class HandedMcpServer(Tagged):
    """An MCP server that the client wants the agent to use."""


class HttpMcpServer(HandedMcpServer):
    """One over streamable HTTP."""

    tag: ClassVar[str | None] = "http"

    name: str
    url: str
    headers: tuple[NamedValue, ...] = ()


class SseMcpServer(HandedMcpServer):
    """One over HTTP and server-sent events."""

    tag: ClassVar[str | None] = "sse"

    name: str
    url: str
    headers: tuple[NamedValue, ...] = ()


class StdioMcpServer(HandedMcpServer):
    """A program; it is the one without a `type`."""

    name: str
    command: str
    args: tuple[str, ...] = ()
    env: tuple[NamedValue, ...] = ()


HandedMcpServer.otherwise = StdioMcpServer


class SessionMode(CamelCased):
    """A way to work that the user can choose."""

    id: str
    name: str
    description: str | None = None


class SessionModeState(CamelCased):
    """The modes, and which of them applies."""

    current_mode_id: str
    available_modes: tuple[SessionMode, ...] = ()


class SessionConfigOption(Tagged):
    """Something that the user can set for a session."""


class ConfigChoice(CamelCased):
    """A value to choose; or, with `group` and `options`, several under one heading."""

    name: str
    value: str | None = None
    description: str | None = None
    group: str | None = None
    options: tuple[Any, ...] | None = None


class SelectOption(SessionConfigOption):
    """One value of several."""

    tag: ClassVar[str | None] = "select"

    id: str
    name: str
    current_value: str
    options: tuple[ConfigChoice, ...] = ()
    description: str | None = None
    category: Any = None


class SwitchOption(SessionConfigOption):
    """Yes or no."""

    tag: ClassVar[str | None] = "boolean"

    id: str
    name: str
    current_value: bool
    description: str | None = None
    category: Any = None


class OtherConfigOption(SessionConfigOption):
    """What newer agents let the user set."""

    raw: Mapping[str, Any]


SessionConfigOption.otherwise = OtherConfigOption


class ListedSession(CamelCased):
    """A session in a list. `updated_at` is a time of ISO 8601."""

    session_id: str
    cwd: str
    title: str | None = None
    updated_at: str | None = None
