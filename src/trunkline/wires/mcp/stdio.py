"""The server on a process's own standard input and output, from the first line to the exit code."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from trunkline.base import stdio
from trunkline.base.signals import handled, missed
from trunkline.base.writing import EXIT_BROKEN_PIPE
from trunkline.core.keeper import SessionKeeper
from trunkline.wires.mcp.agents import AgentsOffer
from trunkline.wires.mcp.lines import McpLines
from trunkline.wires.mcp.serve import Client, mcp_server

#: How long requests that are under way may go on after the host has closed its end: long enough for what was piped in,
#: short enough to be gone within the three seconds that hosts wait.
LAST_ANSWER_SECONDS = 1.0
#: How often a host that is not read is looked at, whether it is still there.
LOOK_SECONDS = 0.25

#: Whose client it is: of the user who runs this.
OWN = "own"


class McpStdio:
    """Serves agents to the host that spawned us."""

    def __init__(self, keeper: SessionKeeper, offer: AgentsOffer, pipes: tuple[int, int]) -> None:
        reading, writing = pipes
        self._offer = offer
        self._over: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._writer = stdio.Writer(writing, lambda: self._finish(EXIT_BROKEN_PIPE))
        self._reader = stdio.StdinReader(reading, self._received, self._host_left)
        self._lines = McpLines(mcp_server(offer, lambda _: Client(keeper, OWN)), self._writer)
        self._relief: asyncio.Task[None] | None = None

    async def run(self) -> int:
        """Serve until the host closes its end (0), a signal comes (128 + its number) or nobody reads us (141)."""
        loop = asyncio.get_running_loop()
        for number in handled():
            loop.add_signal_handler(number, self._finish, 128 + number)
        if (number_before := missed()) is not None:
            self._finish(128 + number_before)
        self._reader.start()
        code = await self._over
        self._reader.close()
        if self._relief is not None:
            self._relief.cancel()
        if code == 0:
            await self._lines.finish(LAST_ANSWER_SECONDS)
        await self._lines.close()
        await self._offer.close()
        await self._writer.close()
        return code

    def _finish(self, code: int) -> None:
        if not self._over.done():
            self._over.set_result(code)

    def _host_left(self) -> None:
        self._lines.end()
        self._finish(0)

    def _received(self, data: bytes) -> None:
        self._lines.feed(data)
        if self._lines.flooded:
            self._reader.pause()
            self._relief = asyncio.get_running_loop().create_task(self._read_on(), name="wait for room")

    async def _read_on(self) -> None:
        """Read on when there is room; a host that leaves instead is noticed all the same."""
        while self._lines.flooded:
            if self._reader.hung_up():
                self._finish(0)
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self._lines.relief(), LOOK_SECONDS)
        self._reader.resume()
