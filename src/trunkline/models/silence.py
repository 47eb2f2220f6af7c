"""What to do about a server that says nothing: it may be thinking, or gone without a word.

A model may read a long prompt for minutes. A machine that is cut off, or a process that is stopped, looks the same from
here, except that it does not answer a probe either.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from trunkline.core.faults import ProviderError
from trunkline.models.model import Chunk


async def listened(
    chunks: AsyncGenerator[Chunk, None], probe: Callable[[], Awaitable[None]], seconds: float
) -> AsyncGenerator[Chunk, None]:
    """The chunks as they come. Whenever none has come for so many seconds, `probe` says whether one still may.

    What they come from is left with this, and when the probe fails.

    Raises:
        ProviderError: the probe's; or as the chunks.
    """
    async with aclosing(chunks):
        while (chunk := await _next(chunks, _Vigil(probe, seconds))) is not None:
            yield chunk


async def _next(chunks: AsyncGenerator[Chunk, None], vigil: _Vigil) -> Chunk | None:
    try:
        async with asyncio.timeout(None) as patience:
            vigil.begin(patience)
            try:
                return await anext(chunks, None)
            finally:
                await vigil.end()
    except TimeoutError:
        if vigil.fault is None:
            raise
        raise vigil.fault from None


class _Vigil:
    """Probes while one chunk is waited for. That costs a timer as long as it is not silent."""

    def __init__(self, probe: Callable[[], Awaitable[None]], seconds: float) -> None:
        self.fault: ProviderError | None = None
        self._probe = probe
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None
        self._probing: asyncio.Task[None] | None = None

    def begin(self, patience: asyncio.Timeout) -> None:
        """From here on. Where a probe fails, `patience` ends."""
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._silent, patience)

    async def end(self) -> None:
        """Something has come, or nobody waits any more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._probing is not None:
            self._probing.cancel()
            await asyncio.wait([self._probing])

    def _silent(self, patience: asyncio.Timeout) -> None:
        self._probing = asyncio.create_task(self._watch(patience), name="probe a silent model server")

    async def _watch(self, patience: asyncio.Timeout) -> None:
        try:
            while True:
                await self._probe()
                await asyncio.sleep(self._seconds)
        except ProviderError as fault:
            self.fault = fault
            patience.reschedule(asyncio.get_running_loop().time())
