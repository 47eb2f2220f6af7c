"""All MCP servers of a conversation, and their tools.

    servers = McpServers("/workspace", taken={"Read", "Bash"}, on_ready=..., on_problem=...)
    await servers.connect(AddMcpServer("time", "stdio", command="mcp-server-time"))
    servers.tools
    await servers.close()

Servers connect side by side, and their tools are named in the order in which the servers were given: which of two has
the bare name of a tool, and so what an allow-list means, does not depend on who is faster.

A server's tools stay in the list while it is being started again, so that the list a model sees does not flicker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Literal
from urllib.parse import urlsplit

from trunkline.base.redact import Redactor
from trunkline.base.values import Value
from trunkline.core.agent import AddMcpServer
from trunkline.core.faults import ConfigError, Fault, ToolError
from trunkline.tools.mcp import oauth, sdk
from trunkline.tools.mcp.connection import ConnectionLost, Listed, LoginRequired
from trunkline.tools.mcp.http import HttpTransport
from trunkline.tools.mcp.names import Names
from trunkline.tools.mcp.server import McpServer
from trunkline.tools.mcp.stdio import StdioTransport
from trunkline.tools.mcp.tool import McpTool
from trunkline.tools.mcp.transport import Transport

#: How long a server may take from its start to its list of tools.
STARTUP_SECONDS = 30.0

#: Told of a server and the names of its tools, each time those are known (anew).
OnReady = Callable[[str, tuple[str, ...]], None]
#: Told of a server and what went wrong with it, in one sentence or two.
OnProblem = Callable[[str, str], None]


class ServerState(Value):
    """How a server is doing, for people."""

    name: str
    state: Literal["connected", "connecting", "failed", "needs login"]
    why: str = ""
    """What went wrong, in a sentence or two."""
    tools: tuple[McpTool, ...] = ()


class _Failure(Value):
    """Why a server is not there."""

    why: str
    needs_login: bool


class _Place:
    """Where a server stands in line for the names of its tools."""

    def __init__(self) -> None:
        self.take: Callable[[], None] | None = None
        """Offers its tools, as soon as they are known."""
        self.named = asyncio.Event()


class McpServers:
    """The servers of one conversation. Programs among them run in `cwd`, with the variables that `env` gives when they
    are started (ours unless given) and of their own configuration, and no others; only if it is `trusted`, Pythons take
    modules from there. Call `close` at the end.

    `taken` are the names that tools of servers must not have. `on_ready` is called before `connect` returns, and again
    when a server was started again or has changed its tools; `on_problem` for what happens after that.
    """

    def __init__(
        self,
        cwd: str,
        *,
        trusted: bool = False,
        taken: Iterable[str] = (),
        env: Callable[[], Mapping[str, str]] | None = None,
        redactor: Redactor | None = None,
        on_ready: OnReady | None = None,
        on_problem: OnProblem | None = None,
        startup_seconds: float = STARTUP_SECONDS,
    ) -> None:
        self._cwd = cwd
        self._trusted = trusted
        self._env = env
        self._redactor = Redactor() if redactor is None else redactor
        self._names = Names(taken)
        self._on_ready = on_ready
        self._on_problem = on_problem
        self._startup_seconds = startup_seconds
        self._servers: dict[str, McpServer] = {}
        self._tools: dict[str, tuple[McpTool, ...]] = {}
        self._specs: dict[str, AddMcpServer] = {}
        """How all are to be reached that were ever wanted."""
        self._failures: dict[str, _Failure] = {}
        """Why the last attempt to connect one has failed."""
        self._closings: set[asyncio.Task[None]] = set()
        self._line: list[_Place] = []
        """The servers that are starting, in their order. Nobody's tools have names before those of all ahead."""

    @property
    def tools(self) -> tuple[McpTool, ...]:
        """The tools of all servers, in the order in which the servers came."""
        return tuple(tool for name in self._servers for tool in self._tools.get(name, ()))

    async def connect(self, spec: AddMcpServer, place: _Place | None = None) -> tuple[str, ...]:
        """Connect a server, in place of another one of that name; returns the names of its tools.

        One that is connected already, in the same way, is left as it is.

        Raises:
            ConfigError: it cannot be connected like that, or the SDK is missing.
            ToolError: it did not work, or took too long; the text names the server and says why.
        """
        place = place or self._queued()
        self._specs[spec.name] = spec
        self._failures.pop(spec.name, None)
        try:
            return await self._connect(spec, place)
        except Fault as fault:
            self._failures[spec.name] = _Failure(str(fault), isinstance(fault.__cause__, LoginRequired))
            raise
        except asyncio.CancelledError:
            self._failures[spec.name] = _Failure(f"MCP server `{spec.name}` is not connected: that was stopped.", False)
            raise
        finally:
            if place in self._line:
                # It has failed, or was there already: nobody waits for it any longer.
                self._line.remove(place)
                self._name_next()

    async def _connect(self, spec: AddMcpServer, place: _Place) -> tuple[str, ...]:
        check(spec)
        known = self._servers.get(spec.name)
        if known is not None and known.spec == spec and not known.given_up:
            return self._tool_names(spec.name)
        await sdk.load(spec.name)
        server = self._make(spec, place)
        if known is not None:
            self._let_go(known)
        self._servers[spec.name] = server
        try:
            await server.start()
            await place.named.wait()
        except BaseException as error:
            self._forget(server)
            if isinstance(error, LoginRequired):
                raise ToolError(f"MCP server `{spec.name}` {error}.") from error
            if isinstance(error, ConnectionLost):
                raise ToolError(
                    f"MCP server `{spec.name}` {error}.",
                    hint=_HINT.format(spec.name) + (_NOT_INHERITED if spec.transport == "stdio" else ""),
                ) from None
            raise
        return self._tool_names(spec.name)

    @property
    def states(self) -> tuple[ServerState, ...]:
        """How all of them are doing that were ever wanted, in that order."""
        return tuple(map(self._state, self._specs))

    async def reconnect(self, name: str) -> tuple[str, ...]:
        """Let go of a server, if it is there, and connect it anew; returns the names of its tools.

        Raises:
            LookupError: there is none of that name.
            Fault: see `connect`.
        """
        spec = self.spec(name)
        if (server := self._servers.get(name)) is not None:
            self._forget(server)
        return await self.connect(spec)

    def spec(self, name: str) -> AddMcpServer:
        """How a server is to be reached.

        Raises:
            LookupError: there is none of that name.
        """
        server = self._servers.get(name)
        return server.spec if server is not None else self._specs[name]

    async def connect_all(self, specs: Iterable[AddMcpServer]) -> None:
        """Connect several at once. What goes wrong with one is told to `on_problem`, and stops no other."""
        wanted = [(spec, self._queued()) for spec in specs]
        self._specs |= {spec.name: spec for spec, _ in wanted}
        await asyncio.gather(*[self._try(spec, place) for spec, place in wanted])

    async def close(self) -> None:
        """Let go of all servers. Bounded; may be called again."""
        for server in list(self._servers.values()):
            self._forget(server)
        if self._closings:
            await asyncio.wait(self._closings)
        await oauth.settled()

    @property
    def close_seconds(self) -> float:
        """How much longer than usual closing may take."""
        return oauth.SETTLE_SECONDS if oauth.renewing else 0.0

    async def _try(self, spec: AddMcpServer, place: _Place) -> None:
        try:
            await self.connect(spec, place)
        except Fault as fault:
            self._tell_problem(spec.name, str(fault))

    def _queued(self) -> _Place:
        self._line.append(_Place())
        return self._line[-1]

    def _name_next(self) -> None:
        """Name the tools of all servers that nobody ahead is waited for any longer."""
        while self._line and self._line[0].take is not None:
            place = self._line.pop(0)
            if place.take is not None:
                place.take()
            place.named.set()

    def _make(self, spec: AddMcpServer, place: _Place) -> McpServer:
        def make_transport() -> Transport:
            if spec.transport == "stdio":
                return StdioTransport(spec, self._cwd, self._env and self._env(), self._redactor, trusted=self._trusted)
            return HttpTransport(spec, self._redactor)

        def on_tools(tools: tuple[Listed, ...]) -> None:
            def take() -> None:
                if self._servers.get(spec.name) is server:
                    self._take_tools(server, tools)

            if place in self._line:
                place.take = take
                self._name_next()
            else:
                take()

        def on_problem(text: str) -> None:
            if self._servers.get(spec.name) is server:
                self._tell_problem(spec.name, text)

        limit = spec.startup_timeout_ms
        server = McpServer(
            spec,
            make_transport,
            on_tools=on_tools,
            on_problem=on_problem,
            startup_seconds=self._startup_seconds if limit is None else limit / 1000,
        )
        return server

    def _state(self, name: str) -> ServerState:
        server, tools = self._servers.get(name), self._tools.get(name, ())
        failure = self._failures.get(name) if server is None else None
        if server is not None and server.given_up:
            failure = _Failure(f"MCP server `{name}` {server.why_given_up}.", server.needs_login)
        if failure is not None:
            return ServerState(name, "needs login" if failure.needs_login else "failed", failure.why, tools)
        there = server is not None and server.connected
        return ServerState(name, "connected" if there else "connecting", tools=tools)

    def _take_tools(self, server: McpServer, tools: tuple[Listed, ...]) -> None:
        self._tools[server.name] = tuple(McpTool(self._names.of(server.name, t.name), server, t) for t in tools)
        if self._on_ready is not None:
            self._on_ready(server.name, self._tool_names(server.name))

    def _tool_names(self, server: str) -> tuple[str, ...]:
        return tuple(tool.name for tool in self._tools.get(server, ()))

    def _tell_problem(self, name: str, text: str) -> None:
        if self._on_problem is not None:
            self._on_problem(name, text)

    def _forget(self, server: McpServer) -> None:
        if self._servers.get(server.name) is server:
            del self._servers[server.name]
            self._tools.pop(server.name, None)
        self._let_go(server)

    def _let_go(self, server: McpServer) -> None:
        """Close it while others go on: a server may take seconds to end."""
        closing = asyncio.create_task(server.close(), name=f"mcp-{server.name}-close")
        self._closings.add(closing)
        closing.add_done_callback(self._closings.discard)


#: What a program may miss that runs well by hand.
_NOT_INHERITED = (
    " Variables that hold secrets are not handed on to it: name those that it needs in its `env`, such as "
    '`env = { GITHUB_TOKEN = "${GITHUB_TOKEN}" }`.'
)
_HINT = (
    "Check how it is configured, and whether it runs by itself. It is not tried again: once it is put right, use "
    "`/mcp reconnect {}`."
)


def check(spec: AddMcpServer) -> None:
    """Refuse what cannot work before anything is started.

    Raises:
        ConfigError: naming the server and what is missing.
    """
    place = f"MCP server `{spec.name}`"
    if not spec.name:
        raise ConfigError("An MCP server has no name.", hint="Give it one: its tools may be named after it.")
    if spec.startup_timeout_ms is not None and spec.startup_timeout_ms < 1:
        raise ConfigError(f"{place}: `startup_timeout_ms` must be at least 1.")
    if spec.transport == "stdio":
        if not spec.command:
            raise ConfigError(f"{place} has no `command`.", hint="Name the program that is the server.")
    elif spec.transport in ("sse", "streamable-http", "streamable_http"):
        if not _is_address(spec.url or ""):
            raise ConfigError(f"{place} has no `url` that begins with `http://` or `https://`.")
    else:
        raise ConfigError(
            f"{place} has the unknown transport `{spec.transport}`.",
            hint="Use `stdio`, `sse` or `streamable-http`.",
        )


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
