"""A tool that changes files, with what language servers say about the change behind its result."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from trunkline.core.events import Category
from trunkline.tools.edit import Edit
from trunkline.tools.lsp.servers import MOST_TOLD, Findings, LanguageServers, told
from trunkline.tools.threads import reporting
from trunkline.tools.tool import Interrupted, Report, ToolOutput
from trunkline.tools.write import Write


class DiagnosedTool:
    """Write or Edit, as it is; only its result says more."""

    def __init__(self, tool: Write | Edit, servers: LanguageServers) -> None:
        self._tool = tool
        self._servers = servers
        self.name: str = tool.name
        self.category: Category = tool.category
        self.description: str = tool.description
        self.parameters: Mapping[str, Any] = tool.parameters
        self.limit: int = tool.limit
        self.concurrent: bool = tool.concurrent
        self.aliases: Mapping[str, str] = tool.aliases

    def describe(self, args: Mapping[str, Any]) -> str:
        return self._tool.describe(args)

    def outside(self, args: Mapping[str, Any]) -> bool:
        return self._tool.outside(args)

    def place(self, args: Mapping[str, Any]) -> str:
        return self._tool.place(args)

    async def run(self, args: Mapping[str, Any], report: Report) -> ToolOutput:
        output = await self._tool.run(args, report)
        if output.status != "success":
            return output
        path = str((output.metadata or {}).get("file_path", ""))
        looking = self._servers.changed(path)
        try:
            found = await reporting(looking, report, f"Waiting for diagnostics of {args['file_path']}")
        except asyncio.CancelledError:
            # The file is changed, and nobody shall believe otherwise.
            raise Interrupted(output) from None
        return _with(output, args["file_path"], found)


def _with(output: ToolOutput, path: str, findings: list[Findings]) -> ToolOutput:
    text = told(path, findings)
    if not text:
        return output
    listed = [each.told for found in findings for each in found.diagnostics][:MOST_TOLD]
    about = {**(output.metadata or {}), **({"diagnostics": listed} if listed else {})}
    return output.replace(text=f"{output.text}\n\n{text}", metadata=about, foreign=True)
