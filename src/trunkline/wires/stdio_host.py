"""The host that spawned us, at the other end of our standard input and output: from the first byte to the exit code.

For every wire of lines: what the host sends goes to the wire's server, what that writes goes to the host. A host that
floods us and never reads is not read either, so that it cannot fill our memory, and is noticed when it leaves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from trunkline.base import stdio
from trunkline.base.signals import handled, missed
from trunkline.base.writing import EXIT_BROKEN_PIPE

#: How long the answers under way may go on after the host has closed its end: long enough for a message that was
#: piped in, short enough to be gone within the two seconds that hosts wait.
LAST_ANSWER_SECONDS = 0.5

#: Unwritten output beyond which no more is read.
FLOODED_BYTES = 4 * 1024 * 1024

#: How often a host that does not read is looked at, whether it is still there.
LOOK_SECONDS = 0.25


class StdioHost:
    """The pipes to the host. `writer` is the output of the wire's server."""

    def __init__(self, pipes: tuple[int, int]) -> None:
        reading, writing = pipes
        self.writer = stdio.Writer(writing, lambda: self.finish(EXIT_BROKEN_PIPE))
        self._reader = stdio.StdinReader(reading, self._received, self._left)
        self._over: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._relief: asyncio.Task[None] | None = None
        self._feed: Callable[[bytes], None] = _to_nobody
        self._end: Callable[[], None] = _at_no_end
        self._is_flooded: Callable[[], bool] = lambda: self.writer.unwritten > FLOODED_BYTES
        self._has_room: Callable[[], Awaitable[None]] = self._written

    def flooded_when(self, is_flooded: Callable[[], bool], has_room: Callable[[], Awaitable[None]]) -> None:
        """Read no more while there is too much of something else; `has_room` waits until there is not."""
        self._is_flooded, self._has_room = is_flooded, has_room

    async def serve(
        self, feed: Callable[[bytes], None], end: Callable[[], None], begin: Callable[[], None] = lambda: None
    ) -> int:
        """Give what the host sends to `feed`, and its end to `end`; `begin` is called before the first byte is read.

        Returns when the host has closed its end (0), a signal has come (128 + its number), nobody reads us (141), or
        `finish` was called. By then no more is read.
        """
        self._feed, self._end = feed, end
        loop = asyncio.get_running_loop()
        for number in handled():
            loop.add_signal_handler(number, self.finish, 128 + number)
        if (number_before := missed()) is not None:
            self.finish(128 + number_before)
        begin()
        self._reader.start()
        code = await self._over
        self._reader.close()
        if self._relief is not None:
            self._relief.cancel()
        return code

    def finish(self, code: int) -> None:
        """End with this code, if nothing else has ended it before."""
        if not self._over.done():
            self._over.set_result(code)

    async def close(self) -> None:
        """Write what is left."""
        await self.writer.close()

    def _left(self) -> None:
        self._end()
        self.finish(0)

    def _received(self, data: bytes) -> None:
        self._feed(data)
        if self._is_flooded():
            self._reader.pause()
            self._relief = asyncio.get_running_loop().create_task(self._read_on(), name="wait for the host to read")

    async def _read_on(self) -> None:
        """Read on when the host has caught up; a host that leaves instead is noticed all the same."""
        while True:
            if self._reader.hung_up():
                self.finish(0)
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._has_room()
                break
        self._reader.resume()

    async def _written(self) -> None:
        await self.writer.drain()


def _to_nobody(data: bytes) -> None:
    """Nothing is read before `serve`."""


def _at_no_end() -> None:
    """Nor does anything end."""
