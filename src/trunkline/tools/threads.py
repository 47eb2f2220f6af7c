"""Work that may block, beside the event loop.

Each piece gets a daemon thread of its own and not one of a pool: a disk that does not answer then neither keeps other
files waiting nor the program from ending.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

from trunkline.tools.tool import Report

T = TypeVar("T")

#: How often somebody who waits is told so: hosts give up after 15 seconds of silence.
REPORT_SECONDS = 5.0


class Abandoned(Exception):
    """Nobody waits for this work any more, and it has ended without an effect."""


class StopFlag:
    """How a thread learns that nobody waits for it any more."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """Nobody waits any more."""
        self._event.set()

    def check(self) -> None:
        """Go on only if somebody waits. To be called before each effect, and now and then in long work.

        Raises:
            Abandoned: nobody does.
        """
        if self._event.is_set():
            raise Abandoned


async def in_thread(work: Callable[[StopFlag], T]) -> T:
    """Do something that may block, and give what it gives. Cancelling returns at once and sets the `StopFlag`."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    stop = StopFlag()

    def settle(result: T | None, error: BaseException | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]  # a result of `None` is one of `T` here

    def run() -> None:
        outcome: tuple[T | None, BaseException | None]
        try:
            outcome = work(stop), None
        except BaseException as error:  # whatever it is, it belongs to the one who waits
            outcome = None, error
        try:
            loop.call_soon_threadsafe(settle, *outcome)
        except RuntimeError:
            # The loop was closed meanwhile: nobody is left to be told.
            return

    threading.Thread(target=run, name="file work", daemon=True).start()
    try:
        return await done
    finally:
        stop.set()


async def reporting(work: Awaitable[T], report: Report, line: str) -> T:
    """Wait for something that may take long, with a line for people now and then. Cancelling cancels it."""
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=REPORT_SECONDS)
            if not task.done():
                report(line)
    except asyncio.CancelledError:
        task.cancel()
        # It ends what it started before it ends itself.
        await asyncio.wait({task})
        raise
    return task.result()
