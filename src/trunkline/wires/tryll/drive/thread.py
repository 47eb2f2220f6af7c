"""An event loop in a thread of its own, for code that waits."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from trunkline.wires.tryll.errors import TryllError

logger = logging.getLogger(__name__)

T = TypeVar("T")

_CLOSED = "This client is closed."


class LoopThread:
    """An event loop in a thread of its own. However that ends, nobody is left waiting for it."""

    def __init__(self) -> None:
        self.at_end: Callable[[], Coroutine[Any, Any, None]] | None = None
        """What is done last, there."""
        self._loop = asyncio.new_event_loop()
        self._stopped = False
        self._order = threading.Lock()
        """What is begun is begun before the end, or not at all."""
        self._thread = threading.Thread(target=self._work, name="tryll client", daemon=True)
        self._thread.start()

    @property
    def is_here(self) -> bool:
        """Whether whoever asks runs in it."""
        return threading.current_thread() is self._thread

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do it there, and wait here. Whoever is interrupted stops it.

        Raises:
            RuntimeError: it cannot be waited for here.
            TryllError: 1002, the client is closed, or was meanwhile; or what the work raises.
        """
        if self.is_here:
            work.close()
            raise RuntimeError("a listener cannot call the client, whose thread it runs in")
        with self._order:
            done = None if self._stopped else asyncio.run_coroutine_threadsafe(work, self._loop)
        if done is None:
            work.close()
            raise TryllError(1002, _CLOSED)
        try:
            return done.result()
        except concurrent.futures.CancelledError:
            # Nobody else does that.
            raise TryllError(1002, _CLOSED) from None
        except BaseException:
            done.cancel()
            raise

    def finish(self, work: Coroutine[Any, Any, None]) -> None:
        """The same with what ends something: the client's end was the end of that, too.

        Raises:
            RuntimeError, TryllError: as `run`, unless the client is closed.
        """
        try:
            self.run(work)
        except TryllError:
            if not self._stopped:
                raise

    def call(self, function: Callable[[], object]) -> None:
        """Do it there, some time; from wherever."""
        with self._order:
            if not self._stopped:
                self._loop.call_soon_threadsafe(function)

    def stop(self) -> None:
        """End it, and whatever it does. Idempotent."""
        with self._order:
            if not self._stopped:
                self._stopped = True
                self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _work(self) -> None:
        try:
            self._loop.run_forever()
        except BaseException:
            logger.exception("the thread of a client died")
        finally:
            with self._order:
                self._stopped = True
            self._finish()
            self._loop.close()

    def _finish(self) -> None:
        if self.at_end is not None:
            self._at_last(self.at_end())
        # Again as long as there are some: one that would end the thread does not keep the others from their ends.
        while tasks := asyncio.all_tasks(self._loop):
            for task in tasks:
                task.cancel()
            self._at_last(asyncio.wait(tasks))

    def _at_last(self, work: Coroutine[Any, Any, object]) -> None:
        """Do what belongs to the end. Whatever comes of it, there is more to do."""
        try:
            self._loop.run_until_complete(work)
        except BaseException:
            logger.exception("the end of a client failed")
