"""Language servers beside the tools that change files. Nothing of them is imported where none is configured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from trunkline.base.redact import Redactor
from trunkline.core.events import Event, Notice
from trunkline.models.credentials import without_credentials
from trunkline.tools.client_side import ClientSide
from trunkline.tools.edit import Edit
from trunkline.tools.tool import Tool
from trunkline.tools.workspace import Workspace
from trunkline.tools.write import Write

if TYPE_CHECKING:
    from trunkline.tools.lsp.server import LanguageServer
    from trunkline.tools.lsp.servers import LanguageServers


class Diagnosing:
    """The language servers of one conversation. `close` ends them."""

    def __init__(
        self,
        specs: Sequence[LanguageServer],
        workspace: Workspace,
        client: ClientSide,
        announce: Callable[[Event], None],
        environ: Mapping[str, str],
        redactor: Redactor,
        *,
        trusted: bool = False,
    ) -> None:
        self._servers: LanguageServers | None = None
        if not specs:
            return
        from trunkline.tools.lsp.servers import LanguageServers

        self._servers = LanguageServers(
            specs,
            workspace,
            client,
            # What opens something is nobody's business but its owner's.
            env=lambda: without_credentials(environ, redactor),
            redactor=redactor,
            on_problem=lambda problem: announce(Notice(problem)),
            trusted=trusted,
        )

    def beside(self, tool: Tool) -> Tool:
        """The tool with what servers say of its changes, if it makes any and there are servers."""
        if self._servers is None or not isinstance(tool, Write | Edit):
            return tool
        from trunkline.tools.lsp.tool import DiagnosedTool

        return DiagnosedTool(tool, self._servers)

    async def close(self) -> None:
        """End the servers."""
        if self._servers is not None:
            await self._servers.close()
