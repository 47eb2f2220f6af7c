"""Writes the rows of one session, one after the other and in order.

While the database does not answer, the next row is tried again and again: a question whose row is missing would be
waiting where nobody sees it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress

from trunkline.base import backoff
from trunkline.store.database import DatabaseGone

logger = logging.getLogger(__name__)

#: Before the next try, when the database does not answer: soon first, since most troubles pass.
FIRST_DELAY_SECONDS = 0.25
#: The longest: what waits is seen soon after the trouble is over.
LONGEST_DELAY_SECONDS = 5.0

#: How long a row rests that nobody waits for: until a quick agent has said its first word, which a thread and a disk
#: at work would hold up.
REST_SECONDS = 0.025

#: Writes a row. It may be called again if the database did not answer, and changes nothing else before that.
Work = Callable[[], Awaitable[object]]


class RowWriter:
    """The rows of a session that are still to be written."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._rows: deque[Work] = deque()
        self._task: asyncio.Task[None] | None = None
        self._resting: asyncio.TimerHandle | None = None
        self._waiting: set[asyncio.Future[None]] = set()
        self._again = asyncio.Event()
        """Set to try at once."""
        self._last = False

    @property
    def is_busy(self) -> bool:
        """Whether rows are still to be written."""
        return self._task is not None or self._resting is not None

    def write(self, work: Work) -> None:
        """Write a row after those that are waiting."""
        self._rows.append(work)
        self._begin()

    def write_later(self, work: Work) -> None:
        """The same without haste: soon, or with the next row that is written."""
        self._rows.append(work)
        if not self.is_busy:
            self._resting = asyncio.get_running_loop().call_later(REST_SECONDS, self._begin)

    def _begin(self) -> None:
        if self._resting is not None:
            self._resting.cancel()
            self._resting = None
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._write_all(), name="rows of a session")

    async def written(self) -> None:
        """Wait until everything up to now is written.

        Later rows are not waited for: a session that is never idle must not keep the caller waiting forever.

        Raises:
            DatabaseGone: the database does not answer now.
        """
        if not self.is_busy:
            return
        reached = asyncio.get_running_loop().create_future()
        self._waiting.add(reached)
        self.write(lambda: _reach(reached))
        self._again.set()
        try:
            await reached
        finally:
            self._waiting.discard(reached)

    async def end(self) -> None:
        """Try each row that is left once more. Opening the session corrects those that fail, from the log."""
        self._last = True
        while self.is_busy:
            with suppress(DatabaseGone):
                await self.written()

    async def _write_all(self) -> None:
        failures = 0
        try:
            while self._rows:
                self._again.clear()
                try:
                    await self._rows[0]()
                except DatabaseGone as error:
                    failures += 1
                    if failures == 1:
                        logger.warning("the rows of session %s cannot be written yet: %s", self._session, error)
                    self._tell(error)
                    if not self._last:
                        await self._pause(failures)
                        continue
                except Exception:
                    # It is in the log; the rows are corrected when the session is opened next.
                    logger.exception("a row of session %s could not be written", self._session)
                else:
                    failures = 0
                self._rows.popleft()
        finally:
            self._task = None

    def _tell(self, error: DatabaseGone) -> None:
        for reached in self._waiting:
            if not reached.done():
                reached.set_exception(DatabaseGone(str(error)))

    async def _pause(self, failures: int) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(backoff.delay(failures, FIRST_DELAY_SECONDS, LONGEST_DELAY_SECONDS)):
                await self._again.wait()


async def _reach(reached: asyncio.Future[None]) -> None:
    if not reached.done():
        reached.set_result(None)
