"""The server on a process's own standard input and output, from the first line to the exit code."""

from __future__ import annotations

from trunkline.core.keeper import SessionKeeper
from trunkline.wires.mcp.agents import AgentsOffer
from trunkline.wires.mcp.lines import McpLines
from trunkline.wires.mcp.serve import Client, mcp_server
from trunkline.wires.stdio_host import StdioHost

#: How long requests that are under way may go on after the host has closed its end: long enough for what was piped in,
#: short enough to be gone within the three seconds that hosts wait.
LAST_ANSWER_SECONDS = 1.0

#: Whose client it is: of the user who runs this.
OWN = "own"


class McpStdio:
    """Serves agents to the host that spawned us."""

    def __init__(self, keeper: SessionKeeper, offer: AgentsOffer, pipes: tuple[int, int]) -> None:
        self._offer = offer
        self._host = StdioHost(pipes)
        self._lines = McpLines(mcp_server(offer, lambda _: Client(keeper, OWN)), self._host.writer)
        self._host.flooded_when(lambda: self._lines.flooded, self._lines.relief)

    async def run(self) -> int:
        """Serve until the host closes its end (0), a signal comes (128 + its number) or nobody reads us (141)."""
        code = await self._host.serve(self._lines.feed, self._lines.end)
        if code == 0:
            await self._lines.finish(LAST_ANSWER_SECONDS)
        await self._lines.close()
        await self._offer.close()
        await self._host.close()
        return code
