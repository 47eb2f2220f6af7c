"""Work beside the event loop."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tests.support.loop import run as run_virtually
from tests.support.patience import PATIENCE_SECONDS
from trunkline.tools.threads import REPORT_SECONDS, Abandoned, StopFlag, in_thread, reporting


async def test_the_loop_goes_on_while_a_thread_blocks() -> None:
    gate = threading.Event()
    waiting = asyncio.ensure_future(in_thread(lambda stop: gate.wait(PATIENCE_SECONDS)))
    await asyncio.sleep(0)
    assert not waiting.done()
    gate.set()
    assert await waiting is True


async def test_what_it_raises_reaches_the_one_who_waits() -> None:
    def work(stop: StopFlag) -> None:
        raise PermissionError("no")

    with pytest.raises(PermissionError, match="no"):
        await in_thread(work)


async def test_cancelling_returns_at_once_and_the_thread_is_told() -> None:
    started, cancelled, ended = threading.Event(), threading.Event(), threading.Event()

    def work(stop: StopFlag) -> None:
        stop.check()
        started.set()
        cancelled.wait(PATIENCE_SECONDS)
        try:
            stop.check()
        except Abandoned:
            ended.set()
            raise

    task = asyncio.ensure_future(in_thread(work))
    assert await asyncio.to_thread(started.wait, PATIENCE_SECONDS)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    cancelled.set()
    assert await asyncio.to_thread(ended.wait, PATIENCE_SECONDS)


def test_somebody_who_waits_is_told_now_and_then() -> None:
    reports: list[str] = []

    async def main() -> str:
        return await reporting(asyncio.sleep(3.5 * REPORT_SECONDS, "done"), reports.append, "still at it")

    assert run_virtually(main()) == "done"
    assert reports == ["still at it"] * 3


async def test_cancelling_a_wait_cancels_the_work_and_lets_it_clean_up() -> None:
    steps: list[str] = []
    started = asyncio.Event()

    async def work() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            steps.append("cleaned")

    task = asyncio.ensure_future(reporting(work(), steps.append, "line"))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert steps == ["cleaned"]
