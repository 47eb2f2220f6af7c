"""Whatever happens to the threads of a database, nobody waits for them in vain."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.store.database import DatabaseGone, Transaction
from trunkline.store.database.worker_pool import Job, WorkerPool


class NoTransaction:
    """Work on nothing."""

    dialect = "sqlite"

    def check(self) -> None:
        pass


class Workers:
    """Runs jobs, unless it is told to break."""

    def __init__(self) -> None:
        self.groups: list[int] = []
        self.breaks = False
        self.free = threading.Event()
        self.free.set()
        self.closed = 0

    def run(self, jobs: Sequence[Job[Any]]) -> None:
        assert self.free.wait(PATIENCE_SECONDS)
        self.groups.append(len(jobs))
        for job in jobs:
            job.run(NoTransaction())  # type: ignore[arg-type]
        if self.breaks:
            raise MemoryError("no more")

    def close(self) -> None:
        self.closed += 1


def nothing(tx: Transaction) -> str:
    return "done"


async def test_jobs_that_wait_are_handed_over_together_up_to_the_limit() -> None:
    workers = Workers()
    workers.free.clear()
    pool = WorkerPool("test", [workers], 10)
    waiting = [asyncio.ensure_future(pool.do(nothing)) for _ in range(26)]
    await asyncio.sleep(0)
    workers.free.set()
    assert await asyncio.gather(*waiting) == ["done"] * 26
    assert sum(workers.groups) == 26
    assert max(workers.groups) == 10
    assert len(workers.groups) <= 4
    await pool.close()


async def test_jobs_of_a_hand_that_breaks_fail_although_their_work_was_done_and_the_next_ones_do_not() -> None:
    workers = Workers()
    pool = WorkerPool("test", [workers], 10)
    workers.breaks = True
    async with asyncio.timeout(PATIENCE_SECONDS):
        with pytest.raises(MemoryError):
            await pool.do(nothing)
        workers.breaks = False
        assert await pool.do(nothing) == "done"
        await pool.close()
    assert workers.closed == 1


async def test_callers_are_refused_when_the_last_thread_has_died(monkeypatch: pytest.MonkeyPatch) -> None:
    died = threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda _: died.set())

    def fail(self: WorkerPool) -> None:
        raise MemoryError

    monkeypatch.setattr(WorkerPool, "_take", fail)
    pool = WorkerPool("test", [Workers()])
    async with asyncio.timeout(PATIENCE_SECONDS):
        with pytest.raises(DatabaseGone):
            await pool.do(nothing)
        with pytest.raises(DatabaseGone):
            await pool.do(nothing)
        await pool.close()
    assert died.wait(PATIENCE_SECONDS)


async def test_closing_waits_for_all_threads_and_may_be_done_twice() -> None:
    workers = [Workers(), Workers(), Workers()]
    pool = WorkerPool("test", workers)
    waiting = [asyncio.ensure_future(pool.do(nothing)) for _ in range(5)]
    await asyncio.sleep(0)
    await asyncio.gather(pool.close(), pool.close())
    assert await asyncio.gather(*waiting) == ["done"] * 5
    assert [worker.closed for worker in workers] == [1, 1, 1]
