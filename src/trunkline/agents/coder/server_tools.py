"""The tools of a conversation's MCP servers: connected, offered to the model, shown to people by `/mcp`.

With few of them the model is told all about each. With more than `MOST_OFFERED`, and for servers that say so, it is
told the names, and `ToolSearch` brings the rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from trunkline.agents.coder.commands import HELP, TypedCommand
from trunkline.agents.coder.compaction import Say
from trunkline.base.environ_secrets import environment_secrets
from trunkline.base.nearest import suggestion
from trunkline.base.redact import Redactor
from trunkline.base.vocabulary import OWN_TOOLS
from trunkline.core.agent import AddMcpServer
from trunkline.core.events import MCP_READY, Event, Extension, Notice
from trunkline.core.faults import Fault, Mistyped
from trunkline.models.credentials import without_credentials
from trunkline.tools.mcp.servers import McpServers, ServerState
from trunkline.tools.mcp.tool import McpTool
from trunkline.tools.tool_search import MOST_OFFERED, ToolSearch
from trunkline.tools.toolbox import Toolbox
from trunkline.tools.truncation import one_line

#: Of a tool's description in a list for people.
DESCRIBED_CHARS = 100
#: Of why a server is not there, in such a list.
WHY_CHARS = 500

_RECONNECT, _LOGIN = "reconnect", "login"
_USAGE = "Use `/mcp`, `/mcp NAME`, `/mcp reconnect NAME` or `/mcp login NAME`."


class ServerTools:
    """The servers of one conversation, and their tools in its toolbox."""

    def __init__(
        self,
        workspace: str,
        toolbox: Toolbox,
        announce: Callable[[Event], None],
        environ: Mapping[str, str],
        redactor: Redactor,
        *,
        trusted: bool,
    ) -> None:
        self._toolbox = toolbox
        self._announce = announce
        self._redactor = redactor
        self._servers = McpServers(
            workspace,
            trusted=trusted,
            taken={*toolbox.names, *OWN_TOOLS},
            # What opens something is nobody's business but its owner's, unless a server's own `env` names it.
            env=lambda: without_credentials(environ, redactor),
            redactor=redactor,
            on_ready=self._ready,
            on_problem=self._problem,
        )
        self._offered: tuple[McpTool, ...] = ()
        """Those that are in the toolbox."""
        self._starting: asyncio.Task[None] | None = None
        self.command = TypedCommand(
            HELP["/mcp"], self._mcp, "[NAME|reconnect NAME|login NAME]", needs_approver=_starts_something
        )
        """`/mcp`."""

    def __bool__(self) -> bool:
        """Whether there are tools."""
        return bool(self._offered)

    def start(self, servers: Sequence[AddMcpServer]) -> None:
        """Begin to connect the servers of the configuration, all at once."""
        if servers:
            self._starting = asyncio.get_running_loop().create_task(
                self._servers.connect_all(servers), name="connect the MCP servers"
            )

    async def ready(self) -> None:
        """Wait until the servers of the configuration are there, or known not to be; each has its own time limit."""
        if self._starting is not None:
            await asyncio.shield(self._starting)
            self._starting = None

    async def connect(self, server: AddMcpServer) -> None:
        """Connect one more server.

        Raises:
            Fault: it did not work; the text names the server.
        """
        self._redactor.learn(environment_secrets({**(server.env or {}), **(server.headers or {})}))
        try:
            await self._servers.connect(server)
        finally:
            # One that failed may have taken the place, and the tools, of another.
            self._offer()

    @property
    def close_seconds(self) -> float:
        """How much longer than usual closing may take."""
        return self._servers.close_seconds

    async def close(self) -> None:
        """End the servers."""
        if self._starting is not None:
            self._starting.cancel()
        await self._servers.close()

    def put_into(self, toolbox: Toolbox) -> None:
        """Offer all tools in a toolbox that has none of them."""
        tools = self._servers.tools
        by_itself = [tool for tool in tools if not tool.deferred]
        deferred = tools if len(by_itself) > MOST_OFFERED else [tool for tool in tools if tool.deferred]
        toolbox.defer(tool.name for tool in deferred)
        if deferred:
            toolbox.add(ToolSearch(deferred, toolbox.bring))
        for tool in tools:
            toolbox.add(tool)

    def _ready(self, server: str, tools: tuple[str, ...]) -> None:
        self._offer()
        self._announce(Extension(MCP_READY, {"name": server, "tools": tools}))

    def _problem(self, server: str, problem: str) -> None:
        self._offer()
        self._announce(Notice(problem))

    def _offer(self) -> None:
        """Bring the toolbox up to date with what the servers have now."""
        if self._offered == self._servers.tools:
            return
        for name in (ToolSearch.name, *(tool.name for tool in self._offered)):
            self._toolbox.remove(name)
        self.put_into(self._toolbox)
        self._offered = self._servers.tools

    # What people see

    async def _mcp(self, rest: str, say: Say) -> str:
        words = rest.split(maxsplit=1)
        states = {state.name: state for state in self._servers.states}
        if not words:
            return "\n".join(map(_line, states.values())) or "There are no MCP servers."
        verb, name = words[0], "".join(words[1:])
        if verb in (_RECONNECT, _LOGIN) and (name or verb not in states):
            return await self._connected_anew(_named(name, states).name, say if verb == _LOGIN else None)
        return self._listed(_named(rest, states))

    async def _connected_anew(self, name: str, login: Say | None) -> str:
        """Connect a server once more; with `login`, let somebody log in to it first."""
        try:
            if login is not None:
                # Hardly ever needed, and an agent's start is short.
                from trunkline.agents.coder.server_logins import log_in

                await log_in(self._servers.spec(name), login, self._redactor)
            await self.ready()
            names = await self._servers.reconnect(name)
        except Fault as fault:
            return str(fault)
        finally:
            self._offer()
        return f"MCP server `{name}` is connected: {_count(names)}."

    def _listed(self, state: ServerState) -> str:
        lines = [_line(state)]
        for tool in state.tools:
            known = " (name only, until ToolSearch brings it)" if self._toolbox.hides(tool.name) else ""
            lines.append(f"  {tool.name}{known}: {one_line(tool.description, DESCRIBED_CHARS)}")
        return "\n".join(lines)


def _starts_something(rest: str) -> bool:
    return rest.split(maxsplit=1)[:1] in ([_RECONNECT], [_LOGIN])


def _named(name: str, states: Mapping[str, ServerState]) -> ServerState:
    if name in states:
        return states[name]
    there = f"There are {', '.join(f'`{each}`' for each in states)}." if states else "There are none."
    what = f"There is no MCP server `{name}`.{suggestion(name, states)}" if name else "No MCP server is named."
    raise Mistyped(what, hint=f"{there} {_USAGE}")


def _line(state: ServerState) -> str:
    names = tuple(tool.name for tool in state.tools)
    line = f"{state.name}: {state.state}"
    if state.state == "connected" or names:
        line += f", {_count(names)}"
    if state.why:
        return f"{line}: {one_line(state.why, WHY_CHARS)}"
    return f"{line}: {', '.join(names)}" if names else line


def _count(names: Sequence[str]) -> str:
    return f"{len(names)} {'tool' if len(names) == 1 else 'tools'}"
