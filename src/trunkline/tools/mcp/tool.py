"""One tool of an MCP server, as agents see tools."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from trunkline.base import jsontext
from trunkline.core.events import Category
from trunkline.tools.mcp.connection import Listed, OnProgress
from trunkline.tools.mcp.messages import mended
from trunkline.tools.mcp.names import rule_name
from trunkline.tools.mcp.results import tool_output
from trunkline.tools.mcp.server import McpServer, Unavailable
from trunkline.tools.mcp.transport import first_line
from trunkline.tools.tool import Report, ToolOutput

#: Between two signs of life. Hosts give up after 15 seconds of silence.
PROGRESS_SECONDS = 5.0

_LONGEST_RESULT = 50_000
#: Of the arguments, for people. The whole of them is in the request, too.
_DESCRIBED_CHARS = 500


class McpTool:
    """A tool of `server`, which the model calls by `name`."""

    category: Category = "mcp"
    limit = _LONGEST_RESULT
    #: Nobody knows what it changes.
    concurrent = False

    def __init__(self, name: str, server: McpServer, listed: Listed) -> None:
        self.name = name
        self.description = listed.description or f"The tool `{listed.name}` of the MCP server `{server.name}`."
        # What is no object's schema at all would make a model's service refuse the whole request.
        self.parameters: Mapping[str, Any] = {"properties": {}, **listed.schema, "type": "object"}
        self.deferred = server.spec.deferred
        """Whether a model is told no more than its name."""
        self.rule_name = rule_name(server.name, listed.name)
        self._server = server
        self._tool = listed.name

    def describe(self, args: Mapping[str, Any]) -> str:
        try:
            text = jsontext.dumps(dict(args)).decode()
        except TypeError:
            text = "?"
        short = text if len(text) <= _DESCRIBED_CHARS else text[:_DESCRIBED_CHARS] + "..."
        return f"MCP {self._server.name}/{self._tool}: {short}"

    def outside(self, args: Mapping[str, Any]) -> bool:
        # A server can reach anything; that is why each call needs approval.
        return False

    async def run(self, args: Mapping[str, Any], report: Report) -> ToolOutput:
        said = ""

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            nonlocal said
            said = message or said

        loop = asyncio.get_running_loop()
        begun = loop.time()
        call = asyncio.create_task(self._call(dict(args), on_progress), name=f"mcp-call-{self.name}")
        try:
            while not (await asyncio.wait({call}, timeout=PROGRESS_SECONDS))[0]:
                place = f"{self._server.name}/{self._tool}"
                news = f": {said}" if said else ""
                report(f"still waiting for {place} after {loop.time() - begun:.0f} s{news}")
        finally:
            # Returns at once, too: the server is told behind our back.
            call.cancel()
            await asyncio.wait({call})
        return call.result()

    async def _call(self, args: dict[str, Any], on_progress: OnProgress) -> ToolOutput:
        from mcp import MCPError
        from pydantic import ValidationError

        try:
            return tool_output(await self._server.call(self._tool, mended(args), on_progress))
        except Unavailable as error:
            return ToolOutput(str(error), "error")
        except MCPError as error:
            return ToolOutput(f"MCP error {error.code}: {error.message}", "error", foreign=True)
        except (RuntimeError, ValidationError) as error:
            # The SDK's way to say that an answer breaks the protocol, or the tool's own schema.
            return ToolOutput(
                f"MCP server `{self._server.name}` gave an answer that cannot be used: {first_line(error)}",
                "error",
                foreign=True,
            )
