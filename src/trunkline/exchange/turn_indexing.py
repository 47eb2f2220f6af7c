"""Turns that are in a log and have no row get one, beside everything else: after a start those of sessions from before
there were rows, later those of forks and of turns that this process did not hear from their beginning.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import islice

from trunkline.core.events import Envelope, Gap
from trunkline.core.faults import Fault
from trunkline.exchange.acts import Acts
from trunkline.exchange.places import Places
from trunkline.exchange.turn_fold import TurnFold
from trunkline.exchange.turn_rows import TurnRow, TurnRows, UnindexedSession
from trunkline.store.database import DatabaseGone
from trunkline.store.view import SessionView

logger = logging.getLogger(__name__)

#: Sessions that are looked up at once, and rows that are written at once.
SESSIONS_AT_ONCE, ROWS_AT_ONCE = 100, 100
#: Before the next try, when the database does not answer.
PAUSE_SECONDS = 30.0

#: Waits until what has happened in sessions can be read here.
Awaited = Callable[[Iterable[str]], Awaitable[None]]
#: The whole log of a session, to be read once and in a thread. Raises a `Fault` if there is none to read.
Peek = Callable[[str], SessionView]


class TurnIndexing:
    """The work, one session after the other."""

    def __init__(self, turns: TurnRows, acts: Acts, places: Places, awaited: Awaited, peek: Peek) -> None:
        self._turns = turns
        self._acts = acts
        self._places = places
        self._awaited = awaited
        self._peek = peek
        self._wanted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._unreadable: dict[str, int] = {}
        """Sessions whose logs could not be read, each with its mark then: they are left alone until it is another."""

    def start(self) -> None:
        """Begin, and go on whenever there is more to do."""
        self._wanted.set()
        self._task = asyncio.create_task(self._work(), name="index turns")

    def look(self, *, again: bool = False) -> None:
        """There may be more to do. `again`: also in sessions whose logs could not be read."""
        if again:
            self._unreadable.clear()
        self._wanted.set()

    async def close(self) -> None:
        """Stop. What is left to do is done after the next start."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _work(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                while await self._some():
                    pass
            except DatabaseGone as error:
                logger.warning("the turns of earlier sessions cannot be indexed now: %s", error)
                await asyncio.sleep(PAUSE_SECONDS)
                self._wanted.set()
            except Exception:
                logger.exception("the turns of earlier sessions cannot be indexed")

    async def _some(self) -> bool:
        """A few sessions; whether there may be more of them."""
        found = await self._turns.unindexed(SESSIONS_AT_ONCE + len(self._unreadable))
        new = [each for each in found if self._unreadable.get(each.session) != each.mark]
        for each in new:
            try:
                if await self._places.is_elsewhere(each.session):
                    # That node sees to its rows.
                    self._unreadable[each.session] = each.mark
                else:
                    await self._index(each)
            except DatabaseGone:
                raise
            except (Fault, OSError) as error:
                logger.warning("the turns of session %s cannot be indexed: %s", each.session, error)
                self._unreadable[each.session] = each.mark
            except Exception:
                logger.exception("the turns of session %s cannot be indexed", each.session)
                self._unreadable[each.session] = each.mark
        return bool(new)

    async def _index(self, found: UnindexedSession) -> None:
        known = await self._turns.known(found.session)
        forked = next((act for act in await self._acts.of(found.session) if act.what == "forked_from"), None)
        await self._awaited([found.session])
        records = self._peek(found.session).records
        rows = _missing(TurnFold(found.session, found.agent, forked), records, known)
        while some := await asyncio.to_thread(lambda: list(islice(rows, ROWS_AT_ONCE))):
            await self._turns.add(some)
        await self._turns.indexed(found)


def _missing(fold: TurnFold, records: Iterable[Envelope | Gap], known: set[int]) -> Iterator[TurnRow]:
    for record in records:
        if isinstance(record, Envelope) and (row := fold.take(record)) is not None and row.turn not in known:
            yield row
