"""For tests of MCP servers: the servers of a conversation, and all that they had to say."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.patience import PATIENCE_SECONDS
from trunkline.base.redact import Redactor
from trunkline.core.agent import AddMcpServer
from trunkline.tools.mcp.servers import McpServers
from trunkline.tools.mcp.tool import McpTool
from trunkline.tools.tool import ToolOutput

SMALL_SERVER = Path(__file__).with_name("mcp_server.py")


def small(*flags: str, name: str = "small", **more: Any) -> AddMcpServer:
    """The small server of our own that can misbehave."""
    return AddMcpServer(name, "stdio", command=sys.executable, args=("-S", "-E", str(SMALL_SERVER), *flags), **more)


class Watched:
    """Servers, and what their owner was told."""

    def __init__(
        self, cwd: Path, taken: Collection[str], startup_seconds: float, env: Mapping[str, str] | None
    ) -> None:
        self.ready: list[tuple[str, tuple[str, ...]]] = []
        self.problems: list[tuple[str, str]] = []
        self.reports: list[str] = []
        self.redactor = Redactor()
        self.servers = McpServers(
            str(cwd),
            taken=taken,
            env=None if env is None else lambda: env,
            redactor=self.redactor,
            on_ready=lambda name, tools: self.ready.append((name, tools)),
            on_problem=lambda name, text: self.problems.append((name, text)),
            startup_seconds=startup_seconds,
        )

    def tool(self, name: str) -> McpTool:
        return next(tool for tool in self.servers.tools if tool.name == name)

    async def connect(self, spec: AddMcpServer) -> tuple[str, ...]:
        return await asyncio.wait_for(self.servers.connect(spec), PATIENCE_SECONDS)

    async def call(self, name: str, /, **args: Any) -> ToolOutput:
        return await asyncio.wait_for(self.tool(name).run(args, self.reports.append), PATIENCE_SECONDS)


@asynccontextmanager
async def watched(
    cwd: Path,
    taken: Collection[str] = (),
    startup_seconds: float = PATIENCE_SECONDS,
    env: Mapping[str, str] | None = None,
) -> AsyncIterator[Watched]:
    made = Watched(cwd, taken, startup_seconds, env)
    try:
        yield made
    finally:
        await asyncio.wait_for(made.servers.close(), PATIENCE_SECONDS)


async def until(condition: Callable[[], object]) -> None:
    """Wait for something that happens in another process or task."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():  # noqa: ASYNC110  (another process makes it true, and cannot wake this loop)
            await asyncio.sleep(0.01)
