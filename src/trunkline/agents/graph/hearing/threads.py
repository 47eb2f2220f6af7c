"""Whose turn it is to have speech detected.

All sessions share a few threads, which serve who comes first. Each session has one piece of sound looked at at a time,
however many microphones it has: whoever has many waits for their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

T = TypeVar("T")

#: Threads that detect speech, for all utterances together. They are for nothing else: who speaks is heard at once, also
#: when everybody else's threads are busy. Two of them follow some fifty microphones, and leave the machine to others.
DETECTING_THREADS = 2


class DetectionThreads:
    """Those of one session."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def take(self, work: Callable[[], T]) -> T:
        """Do something in a thread, when it is this session's turn."""
        async with self._lock:
            return await asyncio.get_running_loop().run_in_executor(_threads(), work)


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(DETECTING_THREADS, thread_name_prefix="detect-speech")
