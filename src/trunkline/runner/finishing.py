"""Work that waits for the disk: beside the event loop, and finished once it is begun.

A cycle may be told to end at any moment. What it has begun to write down is then written down first: half of it would
be told twice, or never.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from trunkline.tools.threads import in_thread

T = TypeVar("T")


async def finished(work: Awaitable[T]) -> T:
    """Wait for something that takes a bounded time. A cancellation counts when it is done."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        if not task.cancelled():
            # Whoever cancelled does not hear of it; it must not be reported as forgotten.
            task.exception()
        raise


async def on_disk(work: Callable[[], T]) -> T:
    """Do something that waits for the disk in a thread, to its end."""
    return await finished(in_thread(lambda _: work()))
