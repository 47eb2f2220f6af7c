"""Servers in a thread of their own, for commands that have an event loop themselves."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TypeVar

from tests.support.patience import PATIENCE_SECONDS

T = TypeVar("T")


@contextmanager
def beside(opening: AbstractAsyncContextManager[T]) -> Iterator[T]:
    """What it gives, which lives in the event loop of that thread until the end."""
    ready = threading.Event()
    made: list[T] = []
    ends: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def work() -> None:
        async with opening as found:
            made.append(found)
            end = asyncio.Event()
            ends.append((asyncio.get_running_loop(), end))
            ready.set()
            await end.wait()

    thread = threading.Thread(target=lambda: asyncio.run(work()))
    thread.start()
    try:
        assert ready.wait(PATIENCE_SECONDS)
        yield made[0]
    finally:
        for loop, end in ends:
            loop.call_soon_threadsafe(end.set)
        thread.join(PATIENCE_SECONDS)
