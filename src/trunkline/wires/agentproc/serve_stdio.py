"""The agent end on a process's own standard input and output: from the session's id to the exit code."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import stat
from contextlib import suppress

from trunkline.base import stdio
from trunkline.core.events import UserMessage
from trunkline.core.session import Session
from trunkline.wires.agentproc.serve import Server
from trunkline.wires.agentproc.serve_voices import Voice

EXIT_BROKEN_PIPE = 128 + signal.SIGPIPE


class StdioServer:
    """Serves one turn to the bridge that spawned us."""

    def __init__(self, session: Session, voice: Voice, writing: int) -> None:
        self._session = session
        self._writing = writing
        self._loop = asyncio.get_running_loop()
        self._writer = stdio.Writer(writing, self._deserted)
        self._server = Server(session, self._writer, voice)
        self._reader: stdio.Reader | None = None

    def listen(self, reading: int, so_far: bytes) -> None:
        """Read what the bridge answers; `so_far` is what was read of it before."""
        self._reader = stdio.Reader(reading, self._server.feed, self._server.end)
        self._server.feed(so_far)
        self._reader.start()

    async def run(self, message: UserMessage) -> int:
        """Serve until the turn has ended (0, or by its fault), a signal comes (128 + its number), or nobody reads us.

        However it ends, what the agent has said by then is written, and the session is closed in bounded time.
        """
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self._loop.add_signal_handler(number, self._server.leave, 128 + number)
        self._watch_the_bridge()
        self._server.begin(message)
        code = await self._server.over
        if self._reader is not None:
            self._reader.close()
        await self._session.close()
        self._loop.remove_reader(self._writing)
        await self._writer.close()
        return code

    def _watch_the_bridge(self) -> None:
        """Notice that nobody reads us any more also while there is nothing to write: a bridge may die."""
        if stat.S_ISFIFO(os.fstat(self._writing).st_mode):
            # There is nothing to read from our end of a pipe: what wakes the loop is the loss of the other. A system
            # that cannot tell that leaves it to the next line that is written.
            with suppress(OSError):
                self._loop.add_reader(self._writing, self._woken)

    def _woken(self) -> None:
        self._loop.remove_reader(self._writing)
        poller = select.poll()
        poller.register(self._writing, 0)
        if any(happened & select.POLLERR for _, happened in poller.poll(0)):
            self._deserted()

    def _deserted(self) -> None:
        self._server.leave(EXIT_BROKEN_PIPE)
