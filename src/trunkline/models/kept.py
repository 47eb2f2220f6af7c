"""What is loaded once for all who use it, and stays for a while when nobody does: the next question comes soon.

    kept = Kept()
    async with kept.use("smollm2-135m", load) as engine:
        ...

To load a model takes seconds, and a client without a session asks each time anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Generic, Protocol, TypeVar

#: How long something stays that nobody uses. People read an answer for minutes; its memory may be gigabytes.
KEEP_SECONDS = 300.0


class KeptEngine(Protocol):
    """What is kept."""

    async def close(self) -> None:
        """Free what it holds. Idempotent."""


T = TypeVar("T", bound=KeptEngine)


class _Used(Generic[T]):
    """Something that is loaded, or is being loaded."""

    def __init__(self, loading: asyncio.Task[T]) -> None:
        self.loading = loading
        self.uses = 0
        self.going: asyncio.TimerHandle | None = None


class Kept(Generic[T]):
    """All that is kept, by name. For one event loop."""

    def __init__(self, seconds: float = KEEP_SECONDS) -> None:
        self._seconds = seconds
        self._used: dict[Any, _Used[T]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def take(self, name: Any, load: Callable[[], Awaitable[T]]) -> T:
        """What has that name, loaded if need be. `give` ends the use.

        Raises what `load` raises; the next one tries again.
        """
        used = self._used.get(name)
        if used is None:
            used = self._used[name] = _Used(asyncio.ensure_future(_awaited(load)))
        used.uses += 1
        if used.going is not None:
            used.going.cancel()
            used.going = None
        try:
            # Whoever leaves while it is being loaded leaves it to the others.
            return await asyncio.shield(used.loading)
        except BaseException:
            if used.loading.done() and (used.loading.cancelled() or used.loading.exception() is not None):
                if self._used.get(name) is used:
                    del self._used[name]
            else:
                self.give(name)
            raise

    def give(self, name: Any) -> None:
        """One use has ended."""
        used = self._used.get(name)
        if used is None:
            return
        used.uses -= 1
        if not used.uses:
            used.going = asyncio.get_running_loop().call_later(self._seconds, self._drop, name, used)

    @asynccontextmanager
    async def use(self, name: Any, load: Callable[[], Awaitable[T]]) -> AsyncIterator[T]:
        """The same for the time of a block."""
        found = await self.take(name, load)
        try:
            yield found
        finally:
            self.give(name)

    async def close(self) -> None:
        """Let go of everything, in use or not. Idempotent."""
        for name, used in list(self._used.items()):
            self._drop(name, used)
        if self._closing:
            await asyncio.wait(self._closing)

    def _drop(self, name: Any, used: _Used[T]) -> None:
        if used.going is not None:
            used.going.cancel()
        if self._used.get(name) is used:
            del self._used[name]
        task = asyncio.get_running_loop().create_task(_closed(used.loading), name="a model goes")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


async def _awaited(load: Callable[[], Awaitable[T]]) -> T:
    return await load()


async def _closed(loading: asyncio.Task[Any]) -> None:
    await asyncio.wait([loading])
    if not loading.cancelled() and loading.exception() is None:
        await loading.result().close()
