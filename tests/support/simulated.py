"""Threads and a database that live in the loop, on virtual time: what happens is decided by a seed alone."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import weakref
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from tests.support.loop import VirtualLoop
from trunkline.store.database import DatabaseGone, Dialect, Work
from trunkline.store.database.form import Form, statements
from trunkline.store.database.sqlite_connection import SqliteTransaction

T = TypeVar("T")

#: The longest that a disk takes.
DISK_SECONDS = 0.01


class SimulatedLoop(VirtualLoop):
    """A virtual loop whose threads are timers: they do their work at a moment that chance decides."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self._chance = chance
        self.steps = 0
        """Passes of the loop."""

    def _run_once(self) -> None:
        self.steps += 1
        super()._run_once()  # type: ignore[misc]

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        future: asyncio.Future[T] = self.create_future()

        def work() -> None:
            try:
                result = func(*args)
            except Exception as error:
                if not future.done():
                    future.set_exception(error)
            else:
                if not future.done():
                    future.set_result(result)

        self.call_later(self._chance.random() * DISK_SECONDS, work)
        return future


def run(main: Coroutine[Any, Any, T], chance: random.Random | None = None) -> T:
    """Run a coroutine on such a loop."""
    found = chance or random.Random(0)
    with asyncio.Runner(loop_factory=lambda: SimulatedLoop(found)) as runner:
        return runner.run(main)


class SimulatedDatabase:
    """SQLite in memory. Each process has a `Connection` of its own, and the rows outlive it."""

    def __init__(self, form: Form, chance: random.Random) -> None:
        # It is forgotten, and not closed, by those who kill their processes; Python 3.13 complains of that.
        self.rows = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        weakref.finalize(self, self.rows.close)
        self.rows.execute("PRAGMA foreign_keys = ON")
        for step in form.steps:
            for statement in statements(step, "sqlite"):
                self.rows.execute(statement)
        self.chance = chance
        self._current: Connection | None = None

    def connect(self) -> Connection:
        """For one more process."""
        self._current = Connection(self)
        return self._current

    def crash(self) -> None:
        """End the process as `kill -9` does: what it has not done by now it never will."""
        if self._current is not None:
            self._current.is_dead = True


class Connection:
    """A `Database`. Work is done in the order in which it came, each at a moment that chance decides."""

    def __init__(self, database: SimulatedDatabase) -> None:
        self._database = database
        self._order = asyncio.Lock()
        self.is_dead = False

    @property
    def dialect(self) -> Dialect:
        return "sqlite"

    async def read(self, work: Work[T]) -> T:
        return await self.write(work)

    async def write(self, work: Work[T]) -> T:
        rows = self._database.rows
        async with self._order:
            await self._disk()
            rows.execute("BEGIN")
            try:
                result = work(transaction := SqliteTransaction(rows))
                transaction.check()
                rows.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    rows.execute("ROLLBACK")
                raise
        # The answer takes its time, too: a process may die between the commit and it.
        await self._disk()
        return result

    async def _disk(self) -> None:
        await asyncio.sleep(self._database.chance.random() * DISK_SECONDS)
        if self.is_dead:
            raise DatabaseGone("the process was killed")

    async def close(self) -> None:
        """The rows are kept for the next process."""
