"""A toolbox on a directory, and what its tools answered."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.support.patience import PATIENCE_SECONDS
from trunkline.base.redact import Redactor
from trunkline.tools.client_side import ClientSide
from trunkline.tools.files import FileMemory
from trunkline.tools.tool import ToolOutput
from trunkline.tools.toolbox import Toolbox, standard_tools
from trunkline.tools.workspace import Workspace


class Box:
    """The file tools in a directory, called as a model calls them."""

    def __init__(self, root: Path, *secrets: str, client: ClientSide | None = None) -> None:
        self.root = root
        self.memory = FileMemory()
        redactor = Redactor(secrets)
        self.toolbox = Toolbox(standard_tools(Workspace(root), self.memory, redactor, client), redactor)
        self.reports: list[str] = []

    async def call(self, tool: str, /, **args: Any) -> ToolOutput:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self.toolbox.run(tool, args, self.reports.append)

    async def text(self, tool: str, /, **args: Any) -> str:
        output = await self.call(tool, **args)
        assert output.status == "success", output.text
        return output.text

    async def error(self, tool: str, /, **args: Any) -> str:
        output = await self.call(tool, **args)
        assert output.status == "error", output.text
        assert output.output_type == "text"
        return output.text
