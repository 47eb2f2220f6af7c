"""A program that is attached: what it sends, and what it is told, in bounded memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, suppress

from trunkline.base import attach
from trunkline.base.attach import AttachAnswer, AttachEnding
from trunkline.core.faults import AgentTimeout, SessionNotFound
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.live_session import LiveSession
from trunkline.exchange.people import LOCAL

#: Unread bytes beyond which the agent waits for a host.
MAX_UNREAD = 4 * 1024 * 1024
#: How long it does: longer than a host is busy with itself, and short for the others in the session.
PATIENCE_SECONDS = 5.0
#: How long the last words may take to be read.
LAST_WRITE_SECONDS = 1.0
#: One read. Small: what it holds is handled before anything else has its turn.
READ_BYTES = 16 * 1024


class LocalConnection:
    """Also the `LineOutput` of a wire's server: what it is given goes out in frames."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._held: list[bytes] = []
        self._over = asyncio.Event()
        self._fault: Exception | None = None
        writer.transport.set_write_buffer_limits(high=MAX_UNREAD)

    # The beginning and the end.

    async def header(self) -> bytes:
        """The first line.

        Raises:
            BadAttachment: it is too long.
            IncompleteReadError: there is none.
        """
        try:
            return await self._reader.readuntil(b"\n")
        except asyncio.LimitOverrunError:
            raise attach.BadAttachment("The header is too long.") from None

    def accept(self, answer: AttachAnswer) -> None:
        """Say that it is let in."""
        self._writer.write(attach.encode(answer))

    def refuse(self, error: str, *, retryable: bool) -> None:
        """Say that it is not, and why."""
        self._writer.write(attach.encode(AttachAnswer(error=error, retryable=retryable)))

    def end(self, ending: AttachEnding) -> None:
        """Say how it ended."""
        self.flush()
        self._writer.write(attach.last_frame(ending))

    def let_go(self, fault: Exception) -> None:
        """End it from within: `read` raises this."""
        self._fault = self._fault or fault
        self._over.set()

    async def close(self) -> None:
        """Write the rest, but wait only so long for somebody who does not read."""
        with suppress(OSError):
            self._writer.close()
        try:
            async with asyncio.timeout(LAST_WRITE_SECONDS):
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            self._writer.transport.abort()

    # What it sends.

    async def read(self) -> AsyncGenerator[bytes, None]:
        """What the host sends, until it closes its end. More is read when it has read what it was told.

        Raises:
            Fault: it was disconnected.
            ConnectionError: it is gone.
        """
        over = asyncio.ensure_future(self._over.wait())
        try:
            while True:
                reading = asyncio.ensure_future(self._more())
                await asyncio.wait({reading, over}, return_when=asyncio.FIRST_COMPLETED)
                if self._fault is not None:
                    reading.cancel()
                    await asyncio.wait({reading})
                    raise self._fault
                if not (data := reading.result()):
                    return
                yield data
        finally:
            over.cancel()

    async def _more(self) -> bytes:
        await self._writer.drain()
        return await self._reader.read(READ_BYTES)

    async def gone(self) -> None:
        """Wait until nobody is there any more."""
        with suppress(ConnectionError):
            while await self._reader.read(READ_BYTES):
                pass

    # The output of a wire.

    @property
    def congested(self) -> bool:
        """Whether the agent should wait."""
        return self._fault is None and self._writer.transport.get_write_buffer_size() > MAX_UNREAD

    def write(self, data: bytes) -> None:
        """Hold a line until `flush`."""
        if self._fault is None:
            self._held.append(data)

    def flush(self) -> None:
        """Send what is held."""
        if self._held:
            held, self._held = self._held, []
            self._writer.write(attach.frames(b"".join(held)))

    async def drain(self) -> None:
        """Wait until it is not congested; somebody for whom that takes too long is let go of, and may come back."""
        if not await self.has_read(PATIENCE_SECONDS):
            self.let_go(AgentTimeout(f"The host has not read for {PATIENCE_SECONDS:g} seconds: it was disconnected."))

    async def has_read(self, seconds: float | None) -> bool:
        """Wait until it is not congested; whether it came to that in time. For one that is gone there is no wait."""
        try:
            async with asyncio.timeout(seconds):
                await self._writer.drain()
        except TimeoutError:
            return False
        except ConnectionError as error:
            self.let_go(error)
        return True


def joined(
    exchange: Exchange, live: LiveSession, connection: LocalConnection, wire: str
) -> AbstractAsyncContextManager[LiveSession]:
    """Be a client of the session, for somebody of this machine, as long as it is not removed."""

    def removed() -> None:
        connection.let_go(SessionNotFound("The session was removed."))

    return exchange.switchboard.attached(live.id, removed, by=LOCAL.name, wire=wire)
