"""The sessions of an exchange: opened, joined, left, and closed when nobody uses them.

A session belongs to the exchange, not to a connection. A session that is asleep is a log and a row; the next request
wakes it. After a restart, sessions with something pending are woken: an approval, or a message that was accepted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial

from trunkline.base.redact import Redactor
from trunkline.core.events import Envelope, UserMessage
from trunkline.core.faults import Fault, SessionDamaged, SessionExists, SessionNotFound
from trunkline.core.ids import checked, new_id
from trunkline.core.keeper import LISTED, Removed, When
from trunkline.exchange import late_messages
from trunkline.exchange.accepting import accept
from trunkline.exchange.acts import Acts, What
from trunkline.exchange.approvals import ApprovalStore
from trunkline.exchange.budgets import Budgets
from trunkline.exchange.client_seat import ClientSeat
from trunkline.exchange.cluster.followed_live import FollowedLive
from trunkline.exchange.crowding import Crowding
from trunkline.exchange.directory import AgentEntry, Directory
from trunkline.exchange.doors import Doors
from trunkline.exchange.idle_sweep import IdleSweep
from trunkline.exchange.live_session import LiveSession, Told
from trunkline.exchange.messages import Messages, storable
from trunkline.exchange.places import OnePlace, Places
from trunkline.exchange.session_opening import SessionOpening
from trunkline.exchange.session_rows import SessionQuery, SessionRow, SessionRows
from trunkline.exchange.tally import Tallies
from trunkline.exchange.turn_indexing import TurnIndexing
from trunkline.exchange.turn_rows import TurnRows
from trunkline.exchange.waking import Waking
from trunkline.store.database import Database
from trunkline.store.files import FileStore
from trunkline.store.view import SessionView

logger = logging.getLogger(__name__)

#: How much of a client's text is repeated in an error.
SHOWN_CHARS = 80


class Switchboard:
    """All sessions."""

    def __init__(
        self,
        directory: Directory,
        database: Database,
        sessions: str,
        budgets: Budgets,
        redactor: Redactor,
        *,
        clock: Callable[[], int],
        evict_seconds: float,
        told: Told = lambda approval: None,
        places: Places | None = None,
    ) -> None:
        """`sessions` is the directory of the logs; `told` is called for each approval that a person must decide on.
        `places`: where sessions are; all here, if left out."""
        self.directory = directory
        self.approvals = ApprovalStore(database, clock)
        self.messages = Messages(database, clock)
        self.acts = Acts(database, clock)
        self.budgets = budgets
        self.turns = TurnRows(database)
        self.session_rows = SessionRows(database)
        self.store = FileStore(sessions)
        """The logs, and the files that clients have brought."""
        self._tallies = Tallies(database, self.store)
        self._places: Places = places or OnePlace(self.store)
        self.indexing = TurnIndexing(self.turns, self.acts, self._places, self.awaited, self.peek)
        self._opening = SessionOpening(
            self.approvals, self.messages, self.acts, self._tallies, budgets, redactor, told, self._places,
            self.indexing.look,
        )  # fmt: skip
        self._clock = clock
        self.evict_seconds = evict_seconds
        """How long an unused session keeps its agent running."""
        self._live: dict[str, LiveSession] = {}
        self._doors = Doors()
        self._crowding = Crowding()
        self._sweep = IdleSweep(self._doors, lambda: self.at_work, self._let_go, lambda: self.evict_seconds)
        self._leaving: set[asyncio.Future[None]] = set()
        self._waking = Waking(self.find, self._opening.gave_up)

    # Opening and closing.

    async def start(self, *, wait: bool = True) -> None:
        """Wake every session in which something is pending, and those whose turn was cut off, to end it.

        Without `wait`, in the background: programs may take long to start.
        """
        self._sweep.start()
        if self._places.are_several:
            await self.take_over()
            self.indexing.start()
            return
        waiting = {*await self.approvals.sessions_waiting(), *await self.messages.sessions_waiting()}
        for id, agent in await self._tallies.uncounted():
            async with self._doors.alone(id):
                if agent in self.directory and id not in self._live:
                    count = self.budgets.meter(agent, id).catch_up
                    waiting |= {id} if await self._tallies.left_open(id, count) else set()
        for id in await self.session_rows.passing():
            # Whoever it was opened for went with the last process. What cannot be removed now is with the next start.
            with suppress(Fault, OSError):
                await self.remove(id)
        self._waking.begin(waiting)
        self.indexing.start()
        if wait:
            await self._waking.over()

    async def take_over(self) -> None:
        """Wake the sessions in which something is pending and that no living node has."""
        waiting = await self.take_in_late()
        waiting |= {id for id, _ in await self._tallies.uncounted()}
        ours = {live.id for live in self.at_work if not live.is_followed}
        passing = {id for id in await self.session_rows.passing() if not self._places.is_ours(id)}
        for id in await self._places.free(passing - ours):
            with suppress(Fault, OSError):
                await self.remove(id)
        rows = await asyncio.gather(*map(self.row, sorted(waiting - ours)))
        free = await self._places.free(row.id for row in rows if row is not None and row.agent in self.directory)
        await self.abandon(live for id in free if (live := self._live.get(id)) is not None and live.is_followed)
        self._waking.begin(free)
        self.indexing.look(again=True)

    async def take_in_late(self) -> set[str]:
        """Have ours take up what other nodes did to their rows. Gives all sessions in which something is pending."""
        ours = [live for live in self.at_work if not live.is_followed]
        return await late_messages.take_up(self.messages, self.approvals, ours)

    async def abandon(self, lives: Iterable[LiveSession] | None = None) -> None:
        """Let go of these, or all, at once: they are other nodes' now. Clients are told to come back."""
        found = self.at_work if lives is None else tuple(lives)
        for failed in await asyncio.gather(*map(self._abandon, found), return_exceptions=True):
            if failed is not None:
                logger.error("a session could not be let go of in good order", exc_info=failed)

    async def _abandon(self, live: LiveSession) -> None:
        async with self._doors.alone(live.id):
            if self._live.get(live.id) is live:
                del self._live[live.id]
                await live.abandon()
                for removed in () if live.is_followed else tuple(live.seats.values()):
                    removed()

    async def move(self, live: LiveSession) -> None:
        """Let go of a session that is ours, so that another node can have it. Its clients find it there."""
        async with self._doors.alone(live.id):
            if self._live.get(live.id) is live:
                del self._live[live.id]
                await live.suspend()
                await self._places.release(live.id)
                for removed in tuple(live.seats.values()):
                    removed()

    async def let_go_of(self, agent: str, *, now: bool = False) -> tuple[int, int]:
        """Let go of an agent's sessions that are at rest and have no client; with `now` of all that are ours: turns
        end, what was asked stays asked, and clients are told to come back. Gives how many that were, and were not."""
        ours = [live for live in self.at_work if live.agent == agent and not live.is_followed]
        for live in ours:
            await self._doors.whole(self.move(live) if now else self._let_go(live))
        kept = {live.id for live in ours if self._live.get(live.id) is live}
        # What they took in is answered, whether or not somebody comes back.
        self._waking.begin({*await self.messages.sessions_waiting()} & {live.id for live in ours} - kept)
        return len(ours) - len(kept), len(kept)

    async def close(self) -> None:
        """Close everything. Pending approvals are pending again after the next start."""
        await self._waking.close()
        await self.indexing.close()
        await self._sweep.close()
        await self._doors.close()
        await asyncio.gather(*(live.suspend() for live in self._live.values()), return_exceptions=True)
        self._live.clear()

    async def open(
        self,
        agent: str,
        session_id: str | None = None,
        *,
        workspace: str | None = None,
        by: str = "",
        passing: bool = False,
        here: bool = False,
    ) -> LiveSession:
        """A new session with an agent, or the existing one with that id. `passing`: whoever opens it removes it; if it
        comes to a restart before that, it is removed then. `here`: on no other node.

        Raises:
            UnknownAgent: there is no such agent.
            SessionExists: the id belongs to a session with another agent.
            Fault: the agent is not available.
        """
        entry = self.directory.find(agent)
        id = checked(session_id) if session_id is not None else new_id()
        if not here and not self._places.may_run_here(entry.settings):
            await self._places.open_elsewhere(entry.settings, id, workspace, by, passing)
            return await self.find(id)

        async def opened() -> LiveSession:
            async with self._doors.alone(id):
                # Nobody else can have an id that was just made, and a session that is awake is known.
                live = self._live.get(id)
                row = live.row if live is not None else None if session_id is None else await self.row(id)
                if row is not None and row.agent != agent:
                    raise SessionExists(f"Session `{id[:SHOWN_CHARS]}` is with the agent `{row.agent}`.")
                if row is None:
                    place = await entry.place(workspace)
                    row = SessionRow(id, agent, place, by, self._clock(), self._clock(), int(passing))
                    if await self._places.claimed(row):
                        return await self._begin(entry, row)
                    row = await self._existing(id)  # another node was faster
                return await self._woken(entry, row, here=here)

        return await self._doors.whole(opened())

    async def find(self, session_id: str, *, here: bool = False) -> LiveSession:
        """The session with that id, woken if need be. `here`: only if it is this node's, or can be.

        Raises:
            SessionNotFound: there is none.
            Fault: its agent is not available.
        """

        async def wake() -> None:
            async with self._doors.alone(session_id):
                row = await self._existing(session_id)
                await self._woken(self.directory.find(row.agent), row, here=here)

        while (live := self._live.get(session_id)) is None:
            # Once more, if it was closed or removed before we heard of it.
            await self._doors.whole(wake())
        live.touch()
        return live

    @asynccontextmanager
    async def attached(
        self, session_id: str, removed: Removed = lambda: None, *, by: str = "", wire: str = ""
    ) -> AsyncIterator[LiveSession]:
        """The session, kept awake for the duration of the block. `removed` is called if it is removed. With `wire`,
        joining and leaving are noted."""
        live = await self.find(session_id)
        seats, seat = live.seats, ClientSeat(by, wire, self._clock())
        seats[seat] = removed
        if wire:
            self._note(live, "joined", by, wire)
        try:
            yield live
        finally:
            del seats[seat]
            live.touch()
            if wire:
                self._note(live, "left", by, wire)

    @property
    def at_work(self) -> tuple[LiveSession, ...]:
        """All sessions that are awake."""
        return tuple(self._live.values())

    def live(self, session_id: str) -> LiveSession | None:
        """The session, if it is awake."""
        return self._live.get(session_id)

    async def remove(self, session_id: str) -> None:
        """End a session, and forget it.

        Raises:
            SessionNotFound: there is none.
        """

        async def remove() -> None:
            async with self._doors.alone(session_id):
                live = self._live.get(session_id)
                if live is None or not live.row.passing:
                    await self._existing(session_id)
                is_done = await self._places.remove_elsewhere(session_id)
                if (live := self._live.pop(session_id, None)) is not None:
                    for removed in tuple(live.seats.values()):
                        removed()
                    await live.close()
                # The log first: then an interrupted removal can be repeated. A new session sets a damaged one aside.
                with suppress(SessionNotFound, SessionDamaged):
                    await asyncio.to_thread(self.store.remove, session_id)
                if not is_done:
                    await self._places.forget(session_id)
                    await self.session_rows.delete(session_id)

        await self._doors.whole(remove())

    async def awaited(self, sessions: Iterable[str] | None = None) -> None:
        """After a start, wait until these sessions, or all, are as they will be: woken, or given up. With several
        nodes, also until what has happened in these elsewhere can be read here."""
        named = None if sessions is None else list(sessions)
        await self._waking.awaited(named)
        if self._places.are_several and named is not None and len(named) == 1 and named[0] not in self._live:
            async with self._doors.alone(named[0]):
                if named[0] not in self._live and (row := await self.row(named[0])) is not None:
                    await self._places.fetch(row)

    # Reading without waking, and starting with earlier events.

    def peek(self, session_id: str) -> SessionView:
        """The whole log of a session, to be read once and in a thread.

        Raises:
            SessionNotFound: there is none.
            SessionDamaged: its log does not begin as one should.
        """
        if (live := self._live.get(session_id)) is not None:
            live.session.flush()
        return self.store.peek(session_id)

    async def adopt(self, agent: str, workspace: str, by: str, events: Iterator[Envelope]) -> SessionRow:
        """A new session that starts with these events, in a new log. It is woken when it is first used.

        Raises:
            ConfigError: the log cannot be written.
        """
        now = self._clock()
        row = SessionRow(new_id(), agent, workspace, by, now, now)
        async with self._opening.beginning(row, events) as turns:
            await self.session_rows.insert(row, turns)
        return row

    def _note(self, live: LiveSession, what: What, by: str, detail: str = "") -> None:
        """Note what somebody did; nothing for a session that is let go of: its rows are written."""
        if not live.session.is_closing:
            live.note(self.acts.act(live.session.seq, what, by, detail), self.acts)

    # Messages.

    async def submit(self, live: LiveSession, message: UserMessage, when: When = "queue") -> int:
        """Accept a message; returns the turn that will answer it. Once this returns, it is not lost.

        Raises:
            BudgetExceeded: its agent may not answer now.
            AgentBusy: a turn is in progress and the message must not wait, or too many are already waiting.
            SessionNotFound: the session was removed.
        """
        return await self._doors.whole(self._accepted(live, storable(message), when))

    async def _accepted(self, live: LiveSession, message: UserMessage, when: When) -> int:
        if self._live.get(live.id) is not live:
            # It was closed or removed since the caller found it.
            live = await self.find(live.id)
        if live.is_followed and await self._places.is_free(live.id):
            await self.abandon([live])  # its owner is dead
            live = await self.find(live.id)
        if isinstance(live, FollowedLive):
            return await live.submit(message, when)
        return await accept(self.messages, live, message, when)

    # Rows.

    async def row(self, session_id: str) -> SessionRow | None:
        """What is known about a session without waking it."""
        found = await self.session_rows.get(session_id)
        # That of a passing one may still be on its way.
        return found if found is not None or (live := self._live.get(session_id)) is None else live.row

    async def rows(
        self, agent: str | None = None, limit: int = LISTED, before: str | None = None
    ) -> Sequence[SessionRow]:
        """Sessions, newest first; with `before`, those older than that one."""
        return await self.session_rows.find(SessionQuery(agent=agent), limit, before)

    async def busy(self) -> set[str]:
        """With several nodes: the sessions in which a turn has begun and not ended, or is about to, on any of them."""
        return {id for id, _ in await self._tallies.uncounted()} if self._places.are_several else set()

    async def written(self) -> None:
        """Wait until the rows reflect everything that has been shown."""
        for live in tuple(self._live.values()):
            await live.written()

    # Internals. Call these only while holding the session's lock.

    async def _existing(self, session_id: str) -> SessionRow:
        row = await self.row(session_id)
        if row is None:
            raise SessionNotFound(f"There is no session `{session_id[:SHOWN_CHARS]}` here.")
        return row

    async def _begin(self, entry: AgentEntry, row: SessionRow) -> LiveSession:
        await self._crowding.make_room(self.at_work, self._let_go)
        agent = await entry.agent()
        born = await self.session_rows.begin(row)
        try:
            live = await self._opening.opened(entry, agent, row, resume=False)
        except BaseException:
            await born.settled()
            if await self._places.is_still_ours(row.id):  # else it is another's, row and all
                await self.session_rows.delete(row.id)
            raise
        live.session.when_lost(partial(self._lost, row.id))
        live.follow(born)
        self._live[row.id] = live
        return live

    async def _woken(self, entry: AgentEntry, row: SessionRow, *, here: bool = False) -> LiveSession:
        if (live := self._live.get(row.id)) is not None:
            live.touch()
            return live
        await self._crowding.make_room(self.at_work, self._let_go)
        if here:
            await self._places.check_ours(row, entry)
        elif (followed := await self._places.follow(row, entry, self.approvals, self.messages, self._lost)) is not None:
            self._live[row.id] = followed
            return followed
        agent = await entry.agent()
        live = await self._opening.opened(entry, agent, row, resume=True, queued=await self.messages.waiting(row.id))
        live.session.when_lost(partial(self._lost, row.id))
        try:
            await self._opening.take_up(live)
        except BaseException:
            await live.suspend()
            raise
        # Only now: once others find it, they send messages, and the earlier ones must come first.
        self._live[row.id] = live
        return live

    def _lost(self, session_id: str) -> None:
        """It is another's than it was, or was removed: whoever wants it finds out where it is."""
        if (live := self._live.get(session_id)) is not None:
            leaving = asyncio.ensure_future(self.abandon([live]))
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)

    async def _let_go(self, live: LiveSession) -> None:
        async with self._doors.alone(live.id):
            # It may have been woken again while we waited.
            if live.is_idle and self._live.get(live.id) is live:
                del self._live[live.id]
                if live.is_followed:
                    await live.close()
                    return
                try:
                    await self.acts.add(live.id, live.session.seq, "let_go")
                finally:
                    await live.close()
