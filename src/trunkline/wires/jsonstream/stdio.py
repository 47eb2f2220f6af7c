"""The agent end on a process's own standard input and output: from `ready` to the exit code."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from trunkline.base import stdio
from trunkline.base.signals import handled, missed
from trunkline.base.writing import EXIT_BROKEN_PIPE
from trunkline.core.session import Session
from trunkline.wires.jsonstream import codec
from trunkline.wires.jsonstream.serve import JsonStreamServer

#: How long the answers under way may go on after the host has closed its end: long enough for a message that was
#: piped in, short enough to be gone within the two seconds that hosts wait.
LAST_ANSWER_SECONDS = 0.5

#: Unwritten output beyond which no more commands are read: a host that floods and never reads cannot fill our memory.
FLOODED_BYTES = 4 * 1024 * 1024

#: How often a host that does not read is looked at, whether it is still there.
LOOK_SECONDS = 0.25


class StdioServer:
    """Serves one session to the host that spawned us."""

    def __init__(
        self,
        session: Session,
        pipes: tuple[int, int],
        *,
        named: bool = True,
        max_line: int = codec.MAX_LINE,
    ) -> None:
        reading, writing = pipes
        self._session = session
        self._writer = stdio.Writer(writing, lambda: self._finish(EXIT_BROKEN_PIPE))
        self._reader = stdio.StdinReader(reading, self._received, self._host_left)
        self._server = JsonStreamServer(session, self._writer, named=named, max_line=max_line)
        self._over: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._relief: asyncio.Task[None] | None = None

    async def run(self, *, greeted: bool = False) -> int:
        """Serve until the host closes its end (0), a signal comes (128 + its number) or nobody reads us (141).

        `greeted`: the host was told already that we are ready.
        """
        loop = asyncio.get_running_loop()
        for number in handled():
            loop.add_signal_handler(number, self._finish, 128 + number)
        if (number_before := missed()) is not None:
            self._finish(128 + number_before)
        if not greeted:
            self._server.greet()
        self._reader.start()
        code = await self._over
        self._session.ending()
        self._reader.close()
        if self._relief is not None:
            self._relief.cancel()
        if code == 0:
            await self._server.finish(LAST_ANSWER_SECONDS)
        await self._server.close()
        # Hosts end a process that they have not used yet by a signal, and start another under the same id.
        await self._session.close(keep_unused=code == 0)
        await self._writer.close()
        return code

    def _finish(self, code: int) -> None:
        if not self._over.done():
            self._over.set_result(code)

    def _host_left(self) -> None:
        self._server.end()
        self._finish(0)

    def _received(self, data: bytes) -> None:
        self._server.feed(data)
        if self._writer.unwritten > FLOODED_BYTES:
            self._reader.pause()
            self._relief = asyncio.get_running_loop().create_task(self._read_on(), name="wait for the host to read")

    async def _read_on(self) -> None:
        """Read on when the host has caught up; a host that leaves instead is noticed all the same."""
        while self._writer.congested:
            if self._reader.hung_up():
                self._finish(0)
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self._writer.drain(), LOOK_SECONDS)
        self._reader.resume()
