"""The agent end on a process's own standard input and output: from the session's id to the exit code."""

from __future__ import annotations

import asyncio
import logging
import os
import select
import stat
from contextlib import suppress
from typing import Any

from trunkline.base import stdio
from trunkline.base.signals import handled
from trunkline.base.writing import EXIT_BROKEN_PIPE
from trunkline.core.events import UserMessage
from trunkline.core.session import Session
from trunkline.wires.agentproc.serve import AgentProcServer
from trunkline.wires.agentproc.serve_dialects import DialectWriter

logger = logging.getLogger(__name__)

EXIT_FAILED = 1


class TurnServer:
    """Serves one turn to the bridge that spawned us."""

    def __init__(self, session: Session, dialect: DialectWriter, writing: int) -> None:
        self._session = session
        self._writing = writing
        self._loop = asyncio.get_running_loop()
        self._writer = stdio.Writer(writing, self._deserted)
        self._server = AgentProcServer(session, self._writer, dialect)
        self._reader: stdio.StdinReader | None = None
        self._told: asyncio.Future[int] = self._loop.create_future()
        """The exit code of whatever ends this process from outside."""

    def listen(self, reading: int, so_far: bytes) -> None:
        """Read what the bridge answers; `so_far` is what was read of it before."""
        self._reader = stdio.StdinReader(reading, self._server.feed, self._server.end)
        self._server.feed(so_far)
        self._reader.start()

    async def run(self, message: UserMessage) -> int:
        """Serve until the turn has ended (0, or by its fault), a signal comes (128 + its number), or nobody reads us.

        The whole answer is written, however long the bridge takes to read it: the time limit is the bridge's. After a
        signal, what the agent has said by then is written, if it is read soon. The session is closed in bounded time.
        """
        for number in handled():
            self._loop.add_signal_handler(number, self._leave, 128 + number)
        self._watch_the_bridge()
        self._server.begin(message)
        code = await self._server.over
        if self._reader is not None:
            self._reader.close()
        await self._session.close()
        code = await self._written(code)
        self._loop.remove_reader(self._writing)
        await self._writer.close()
        return code

    async def _written(self, code: int) -> int:
        """Wait until the bridge has read everything, or does not matter any more; gives the exit code."""
        writing = self._loop.create_task(self._writer.emptied(), name="wait for the bridge to read")
        either: set[asyncio.Future[Any]] = {writing, self._told}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        writing.cancel()
        return self._told.result() if self._told.done() else code

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
        error = self._writer.error
        if error is None or isinstance(error, BrokenPipeError):
            self._leave(EXIT_BROKEN_PIPE)
        else:
            logger.error("standard output cannot be written: %s", error.strerror)
            self._leave(EXIT_FAILED)

    def _leave(self, code: int) -> None:
        if not self._told.done():
            self._told.set_result(code)
        self._server.leave(code)
