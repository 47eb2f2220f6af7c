"""The agent end on a process's own standard input and output, from the first line to the exit code."""

from __future__ import annotations

from collections.abc import Callable

from trunkline.base.lines import LineOutput
from trunkline.wires.acp.serve import AcpServer
from trunkline.wires.stdio_host import LAST_ANSWER_SECONDS, StdioHost


class AcpStdio:
    """Serves agents to the editor that spawned us."""

    def __init__(self, pipes: tuple[int, int], make: Callable[[LineOutput], AcpServer]) -> None:
        self._host = StdioHost(pipes)
        self._server = make(self._host.writer)
        self.was_spoken_to = False
        """Whether the editor has said anything."""

    async def run(self) -> int:
        """Serve until the editor closes its end (0), a signal comes (128 + its number), nobody reads us (141), or
        `finish` is called."""
        code = await self._host.serve(self._feed, self._server.end)
        if code == 0:
            await self._server.finish(LAST_ANSWER_SECONDS)
        await self._server.close()
        await self._host.close()
        return code

    def finish(self, code: int) -> None:
        """End with this code."""
        self._host.finish(code)

    def _feed(self, data: bytes) -> None:
        self.was_spoken_to = True
        self._server.feed(data)
