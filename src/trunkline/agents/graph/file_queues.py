"""Threads that write files, one after the other for each file.

Whoever writes may have to wait for another process, which has locked the file. That keeps one thread, however many wait
to write the same file, and none that anything else needs.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class FileQueues:
    """A queue for each file that somebody writes. Any thread and event loop may use it."""

    def __init__(self, threads: int, name: str) -> None:
        """`threads`: how many files are written, or waited for, at the same time."""
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._lock = threading.Lock()
        self._waiting: dict[str, deque[tuple[Future[Any], Callable[[], Any]]]] = {}
        """Of each file that has a thread, or is to get one."""

    async def run(self, path: str, write: Callable[[], T]) -> T:
        """Call it in a thread, when nobody else does so for this file. Raises what it raises.

        Cancelling this takes it out of the queue; once it has begun, it goes on, and those behind it wait for its end.
        """
        future: Future[T] = Future()
        with self._lock:
            if path in self._waiting:
                self._waiting[path].append((future, write))
            else:
                self._threads.submit(self._work, path)
                self._waiting[path] = deque([(future, write)])
        return await asyncio.wrap_future(future)

    def _work(self, path: str) -> None:
        while True:
            with self._lock:
                if not self._waiting[path]:
                    del self._waiting[path]
                    return
                future, write = self._waiting[path].popleft()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(write())
            except BaseException as error:
                future.set_exception(error)
