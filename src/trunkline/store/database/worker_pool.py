"""Threads that do the work of a database, and bring the answers back to the event loop.

A pool has one queue and some threads; each thread has a `Worker`, which keeps a connection. A worker gets what waits,
up to a number, all at once: a commit can serve them all. Their callers are then answered together, with one message to
the loop. A worker that raises fails its own jobs; no caller ever waits for an answer that nobody will give.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, Generic, Protocol, TypeVar

from trunkline.store.database import DatabaseGone, Transaction, Work

T = TypeVar("T")

#: Jobs that wait for one pool. At a thousand a second this is some seconds of work: who comes later had better come
#: back than wait, and memory stays bounded.
MAX_WAITING = 4096


class OwnTransaction(Transaction, Protocol):
    """A transaction as the worker that made it sees it."""

    def check(self) -> None:
        """Raise what a statement raised, if one did: the work may have caught it, but cannot undo it."""


class Job(Generic[T]):
    """One piece of work and what came of it."""

    __slots__ = ("_result", "_work", "error", "future")

    def __init__(self, work: Work[T], future: asyncio.Future[T]) -> None:
        self._work = work
        self.future = future
        self.error: BaseException | None = None

    def run(self, transaction: OwnTransaction) -> bool:
        """Do the work, and say whether it succeeded."""
        try:
            self._result = self._work(transaction)
            transaction.check()
        except StopIteration as error:
            # A future refuses this one, and its caller would wait for ever.
            self.error = RuntimeError(f"the work raised {error!r}")
        except BaseException as error:
            self.error = error
        return self.error is None

    def answer(self) -> None:
        """Tell the caller, in its loop. One that has been cancelled hears nothing."""
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self._result)
        else:
            self.future.set_exception(self.error)


class Worker(Protocol):
    """What does the work of one thread. It is used by that thread alone."""

    def run(self, jobs: Sequence[Job[Any]]) -> None:
        """Run all of them; afterwards each has its result kept for good, or its `error`."""

    def close(self) -> None:
        """Let go of the connection."""


class WorkerPool:
    """Some threads and their queue. Belongs to the event loop in which it was made."""

    def __init__(self, name: str, workers: Sequence[Worker], most_at_once: int = 1) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[Job[Any] | None] = SimpleQueue()
        self._most_at_once = most_at_once
        self._unanswered = 0
        self._alive = len(workers)
        self._closed = False
        self._over: asyncio.Future[None] = self._loop.create_future()
        for number, worker in enumerate(workers, start=1):
            # Daemons: a program that fails before it can close the database must still be able to end.
            threading.Thread(target=self._serve, args=(worker,), name=f"{name}-{number}", daemon=True).start()

    async def do(self, work: Work[T]) -> T:
        """Have work done.

        Raises:
            DatabaseGone: the pool has been dismissed, or has too much to do.
        """
        if self._closed or not self._alive:
            raise DatabaseGone("the database is closed")
        if self._unanswered >= MAX_WAITING:
            raise DatabaseGone(f"{MAX_WAITING} requests wait for the database already: try again later")
        job: Job[T] = Job(work, self._loop.create_future())
        self._unanswered += 1
        self._queue.put(job)
        return await job.future

    async def close(self) -> None:
        """Take nothing more, finish what waits, and end the threads. May be called again."""
        if not self._closed:
            self._closed = True
            for _ in range(self._alive):
                self._queue.put(None)
        await asyncio.shield(self._over)

    # In the threads.

    def _serve(self, worker: Worker) -> None:
        try:
            more = True
            while more:
                jobs, more = self._take()
                if jobs:
                    self._run(worker, jobs)
        finally:
            try:
                worker.close()
            finally:
                self._tell(self._end_one)

    def _take(self) -> tuple[list[Job[Any]], bool]:
        """Wait for a job, and take what else is there; and say whether there can be more."""
        jobs: list[Job[Any]] = []
        job = self._queue.get()
        try:
            while job is not None:
                # Who was cancelled before it began needs nothing done.
                if not job.future.cancelled():
                    jobs.append(job)
                else:
                    self._tell(self._forget_one)
                if len(jobs) >= self._most_at_once:
                    return jobs, True
                job = self._queue.get_nowait()
        except Empty:
            return jobs, True
        return jobs, False

    def _run(self, worker: Worker, jobs: list[Job[Any]]) -> None:
        try:
            worker.run(jobs)
        except BaseException as error:
            for job in jobs:
                job.error = job.error or error
        self._tell(self._answer, jobs)

    def _tell(self, callback: Callable[..., None], *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *arguments)
        except RuntimeError:
            # The loop is closed, and with it everybody is gone who could have waited.
            pass

    # In the loop again.

    def _answer(self, jobs: Sequence[Job[Any]]) -> None:
        self._unanswered -= len(jobs)
        for job in jobs:
            job.answer()

    def _forget_one(self) -> None:
        self._unanswered -= 1

    def _end_one(self) -> None:
        self._alive -= 1
        if self._alive:
            return
        while not self._queue.empty():
            job = self._queue.get_nowait()
            if job is not None:
                job.error = DatabaseGone("the database is closed")
                job.answer()
        self._over.set_result(None)
