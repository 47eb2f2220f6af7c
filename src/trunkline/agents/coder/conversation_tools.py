"""The tools of one conversation: those that come with us, and those of MCP servers as they come and go."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from trunkline.base.environ_secrets import environment_secrets
from trunkline.base.redact import Redactor
from trunkline.core.agent import AddMcpServer
from trunkline.core.events import Event, Extension, Notice
from trunkline.models.credentials import without_credentials
from trunkline.tools.bash import BashTool, find_shell
from trunkline.tools.client_side import ClientSide
from trunkline.tools.files import FileMemory
from trunkline.tools.mcp.servers import McpServers
from trunkline.tools.spawn import Spawner, SpawnTool
from trunkline.tools.tool import Tool
from trunkline.tools.toolbox import Toolbox, standard_tools
from trunkline.tools.workspace import Workspace


class ConversationTools:
    """Makes the tools, and lets go of what they hold."""

    def __init__(
        self,
        workspace: str,
        announce: Callable[[Event], None],
        environ: Mapping[str, str],
        redactor: Redactor,
        *,
        trusted: bool = False,
    ) -> None:
        self._workspace = Workspace(workspace)
        self._redactor = redactor
        self._announce = announce
        self.shell = find_shell(environ)
        self.client = ClientSide()
        """What the client of the turn in progress offers."""
        self._bash = BashTool(workspace, shell=self.shell, redactor=redactor, client=self.client)
        self._memory = FileMemory()
        self.toolbox = Toolbox(self._own_tools(self._memory), redactor)
        self._servers = McpServers(
            workspace,
            trusted=trusted,
            taken={*self.toolbox.names, SpawnTool.name},
            # What opens something is nobody's business but its owner's, unless a server's own `env` names it.
            env=lambda: without_credentials(environ, redactor),
            redactor=redactor,
            on_ready=self._server_ready,
            on_problem=self._server_problem,
        )
        self._offered: tuple[str, ...] = ()
        """The tools of servers that are in the toolbox."""
        self._starting: asyncio.Task[None] | None = None

    def add_spawn(self, spawner: Spawner) -> None:
        """Let the model hand tasks to sub-agents."""
        self.toolbox.add(SpawnTool(spawner))

    def for_subagents(self) -> Toolbox:
        """The same tools for somebody who has read nothing yet, and who has no sub-agents."""
        return Toolbox([*self._own_tools(FileMemory()), *self._servers.tools], self._redactor)

    def start(self, servers: Sequence[AddMcpServer]) -> None:
        """Begin to connect the servers of the configuration, all at once."""
        if servers:
            self._starting = asyncio.get_running_loop().create_task(
                self._servers.connect_all(servers), name="connect the MCP servers"
            )

    @property
    def has_servers(self) -> bool:
        """Whether there are tools of MCP servers."""
        return bool(self._offered)

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

    async def close(self) -> None:
        """End commands and servers."""
        if self._starting is not None:
            self._starting.cancel()
        await asyncio.gather(self._bash.close(), self._servers.close())

    def forget_shown(self) -> None:
        """The model no longer has what it was shown: files that it reads again are shown again."""
        self._memory.forget_shown()

    def _own_tools(self, memory: FileMemory) -> list[Tool]:
        return [*standard_tools(self._workspace, memory, self._redactor, self.client), self._bash]

    def _server_ready(self, server: str, tools: tuple[str, ...]) -> None:
        self._offer()
        self._announce(Extension("mcp_ready", {"name": server, "tools": tools}))

    def _server_problem(self, server: str, problem: str) -> None:
        self._offer()
        self._announce(Notice(problem))

    def _offer(self) -> None:
        """Bring the toolbox up to date with what the servers have now."""
        for name in self._offered:
            self.toolbox.remove(name)
        for tool in self._servers.tools:
            self.toolbox.add(tool)
        self._offered = tuple(tool.name for tool in self._servers.tools)
