"""The sessions of an exchange: opened, joined, left, and closed when nobody uses them.

A session belongs to the exchange, not to a connection. A session that is asleep is a log and a row; the next request
wakes it. After a restart, sessions with something pending are woken: an approval, or a message that was accepted.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress

from trunkline.base.redact import Redactor
from trunkline.core.agent import Agent
from trunkline.core.events import Envelope, UserMessage
from trunkline.core.faults import Fault, SessionDamaged, SessionExists, SessionNotFound, of
from trunkline.core.ids import checked, new_id
from trunkline.core.keeper import LISTED, Removed, When
from trunkline.core.redaction import Redaction
from trunkline.core.session import Session
from trunkline.core.turns import State
from trunkline.exchange.acts import Acts, What
from trunkline.exchange.approvals import ApprovalStore
from trunkline.exchange.budgets import Budgets
from trunkline.exchange.crowding import Crowding
from trunkline.exchange.directory import AgentEntry, Directory
from trunkline.exchange.doors import Doors
from trunkline.exchange.live_session import LiveSession, Told
from trunkline.exchange.messages import Messages, QueuedMessage, begun_in, storable
from trunkline.exchange.session_rows import SessionRow, SessionRows
from trunkline.exchange.tally import Tallies
from trunkline.exchange.waking import Waking
from trunkline.store.copying import copy
from trunkline.store.database import Conflict, Database, DatabaseGone
from trunkline.store.filelog import FileLog
from trunkline.store.files import FileStore
from trunkline.store.view import SessionView

logger = logging.getLogger(__name__)

#: How often to look for unused sessions.
SWEEP_SECONDS = 30.0

#: How much of a client's text is repeated in an error.
SHOWN_CHARS = 80

#: Why an approval is closed that outlived its process. A secret in a call is not in the log.
CANNOT_CONTINUE = "The exchange ended before there was an answer, and this agent cannot continue a turn after that."
CANNOT_RUN = "The exchange ended before there was an answer, and a secret that the call needs was not kept."


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
    ) -> None:
        """`sessions` is the directory of the logs; `told` is called for each approval that a person must decide on."""
        self.directory = directory
        self.approvals = ApprovalStore(database, clock)
        self.messages = Messages(database, clock)
        self.acts = Acts(database, clock)
        self.budgets = budgets
        self._rows = SessionRows(database)
        self.store = FileStore(sessions)
        """The logs, and the files that clients have brought."""
        self._tallies = Tallies(database, self.store)
        self._redactor = redactor
        self._clock = clock
        self.evict_seconds = evict_seconds
        """How long an unused session keeps its agent running."""
        self._told = told
        self._live: dict[str, LiveSession] = {}
        self._doors = Doors()
        self._crowding = Crowding()
        self._sweeping: asyncio.Task[None] | None = None
        self._waking = Waking(self.find, self.approvals.close_all)

    # Opening and closing.

    async def start(self, *, wait: bool = True) -> None:
        """Wake every session in which something is pending, and those whose turn was cut off, to end it.

        Without `wait`, in the background: programs may take long to start.
        """
        self._sweeping = asyncio.create_task(self._sweep(), name="let go of idle sessions")
        waiting = {*await self.approvals.sessions_waiting(), *await self.messages.sessions_waiting()}
        for id, agent in await self._tallies.uncounted():
            async with self._doors.alone(id):
                if agent in self.directory and id not in self._live:
                    count = self.budgets.meter(agent, id).catch_up
                    waiting |= {id} if await self._tallies.left_open(id, count) else set()
        for id in await self._rows.passing():
            # Whoever it was opened for went with the last process. What cannot be removed now is with the next start.
            with suppress(Fault, OSError):
                await self.remove(id)
        self._waking.begin(waiting)
        if wait:
            await self._waking.over()

    async def close(self) -> None:
        """Close everything. Pending approvals are pending again after the next start."""
        await self._waking.close()
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.wait({self._sweeping})
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
    ) -> LiveSession:
        """A new session with an agent, or the existing one with that id. `passing`: whoever opens it removes it; if it
        comes to a restart before that, it is removed then.

        Raises:
            UnknownAgent: there is no such agent.
            SessionExists: the id belongs to a session with another agent.
            Fault: the agent is not available.
        """
        entry = self.directory.find(agent)
        id = checked(session_id) if session_id is not None else new_id()

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
                    return await self._begin(entry, row)
                return await self._woken(entry, row)

        return await self._doors.whole(opened())

    async def find(self, session_id: str) -> LiveSession:
        """The session with that id, woken if need be.

        Raises:
            SessionNotFound: there is none.
            Fault: its agent is not available.
        """

        async def wake() -> None:
            async with self._doors.alone(session_id):
                row = await self._existing(session_id)
                await self._woken(self.directory.find(row.agent), row)

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
        seats, seat = live.seats, object()
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
                if (live := self._live.pop(session_id, None)) is not None:
                    for removed in tuple(live.seats.values()):
                        removed()
                    await live.close()
                # The log first: then an interrupted removal can be repeated. A new session sets a damaged one aside.
                with suppress(SessionNotFound, SessionDamaged):
                    await asyncio.to_thread(self.store.remove, session_id)
                await self._rows.delete(session_id)

        await self._doors.whole(remove())

    async def awaited(self, sessions: Iterable[str] | None = None) -> None:
        """After a start, wait until these sessions, or all, are as they will be: woken, or given up."""
        await self._waking.awaited(sessions)

    # Reading without waking, and starting with earlier events.

    def peek(self, session_id: str) -> SessionView:
        """The whole log of a session, to be read once and in a thread.

        Raises:
            SessionNotFound: there is none.
            SessionDamaged: its log does not begin as one should.
        """
        live = self._live.get(session_id)
        if live is not None:
            live.session.flush()
        return self.store.peek(session_id)

    async def adopt(self, agent: str, workspace: str, by: str, events: Iterator[Envelope]) -> SessionRow:
        """A new session that starts with these events, in a new log. It is woken when it is first used.

        Raises:
            ConfigError: the log cannot be written.
        """
        now = self._clock()
        row = SessionRow(new_id(), agent, workspace, by, now, now)
        log = await asyncio.to_thread(self.store.create, row.id, workspace, agent)
        try:
            turns = await asyncio.to_thread(copy, events, log)
            await log.sync()
            await self._rows.insert(row, turns)
        except BaseException:
            log.discard()
            raise
        log.close()
        return row

    def _note(self, live: LiveSession, what: What, by: str, detail: str = "") -> None:
        """Note what somebody did; nothing for a session that is closed."""
        if live.session.status is not State.CLOSED:
            live.note(self.acts.act(live.session.seq, what, by, detail), self.acts)

    # Messages.

    async def submit(self, live: LiveSession, message: UserMessage, when: When = "queue") -> int:
        """Accept a message; returns the turn that will answer it. Once this returns, it is not lost.

        Raises:
            BudgetExceeded: its agent may not answer now.
            AgentBusy: a turn is in progress and the message must not wait, or too many are already waiting.
            SessionNotFound: the session was removed.
        """
        return await self._doors.whole(self._submit(live, storable(message), when))

    async def _submit(self, live: LiveSession, message: UserMessage, when: When) -> int:
        if self._live.get(live.id) is not live:
            # It was closed or removed since the caller found it.
            live = await self.find(live.id)
        async with live.sending:
            try:
                live.check_free(when)
                live.meter.check_turn()
                if live.row.passing:
                    # Gone with the client that waits for the answer, and after a restart: there is nothing to keep.
                    return live.session.submit(message)
                kept = await self.messages.take(live.id, message, live.session.shown)
            except (Conflict, Fault) as error:
                if message.id and not live.row.passing and (known := await live.known(message.id)) is not None:
                    return known.turn or 0
                gone = SessionNotFound(f"The session `{live.id[:SHOWN_CHARS]}` no longer exists.")
                raise (error if isinstance(error, Fault) else gone) from None
            try:
                # Again, since others may have been faster; there is no await between here and the session.
                live.check_free(when)
                steered = when == "steer" and live.session.steer(kept.message)
                if not steered:
                    live.meter.check_turn()
                turn = live.session.turn if steered else live.session.submit(kept.message)
            except Fault:
                await self.messages.forget(kept.number)
                raise
            if steered:
                # The row must not be ahead of the log, which is written later while the end of a turn is being saved.
                await live.session.settled()
                await self.messages.began(live.id, turn, kept.message)
            elif live.session.turn != turn:
                # Behind the answer: the message is safe already, and each write is a wait for the disk.
                live.placed(kept.number, turn)
            return turn

    # Rows.

    async def row(self, session_id: str) -> SessionRow | None:
        """What is known about a session without waking it."""
        found = await self._rows.get(session_id)
        # That of a passing one may still be on its way.
        return found if found is not None or (live := self._live.get(session_id)) is None else live.row

    async def rows(self, agent: str | None = None, limit: int = LISTED, before: str | None = None) -> list[SessionRow]:
        """Sessions, newest first; with `before`, those older than that one."""
        return await self._rows.list(agent, limit, before)

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
        born = await self._rows.begin(row)
        try:
            live = await self._opened(entry, agent, row, resume=False)
        except BaseException:
            await born.settled()
            await self._rows.delete(row.id)
            raise
        live.follow(born)
        self._live[row.id] = live
        return live

    async def _woken(self, entry: AgentEntry, row: SessionRow) -> LiveSession:
        live = self._live.get(row.id)
        if live is not None:
            live.touch()
            return live
        await self._crowding.make_room(self.at_work, self._let_go)
        agent = await entry.agent()
        waiting = await self.messages.waiting(row.id)
        live = await self._opened(entry, agent, row, resume=True, queued=waiting)
        try:
            await self._take_up(live)
        except BaseException:
            await live.suspend()
            raise
        # Only now: once others find it, they send messages, and the earlier ones must come first.
        self._live[row.id] = live
        return live

    async def _take_up(self, live: LiveSession) -> None:
        """Resume what the last process left: rows that are behind the log, and waiting messages."""
        await self.acts.add(live.id, live.session.seq, "woken", detail=f"process {os.getpid()}")
        turn, requests = live.session.turn, live.session.waiting
        live.session.flush()
        await self._tallies.catch_up(live.id, live.meter.catch_up, live.session.state.turns, but=turn)
        asked = frozenset((turn, request.call_id) for request in requests)
        continues = live.entry.capabilities is not None and live.entry.capabilities.continues
        await self.approvals.close_all(live.id, CANNOT_RUN if continues else CANNOT_CONTINUE, but=asked)
        known = {each.id for each in await self.approvals.found("pending", live.id)}
        for request in requests:
            approval = await self.approvals.asked(live.id, live.agent, turn, request)
            if approval.id not in known:
                self._told(approval)
        for queued in await self.messages.waiting(live.id):
            await self.messages.placed(queued.number, live.session.submit(queued.message))

    async def _opened(
        self, entry: AgentEntry, agent: Agent, row: SessionRow, *, resume: bool, queued: Sequence[QueuedMessage] = ()
    ) -> LiveSession:
        log, create = self._log(entry, row, resume)
        meter = self.budgets.meter(entry.name, row.id, getattr(getattr(agent, "settings", None), "prices", None))
        own: Redactor | None = getattr(agent, "redactor", None)
        try:
            if queued:
                for turn, message in await asyncio.to_thread(begun_in, log, queued):
                    await self.messages.began(row.id, turn, message)
            session = await Session.open(
                agent,
                log,
                entry.policy(agent),
                resume=not create,
                mode=entry.settings.mode if create else None,
                workspace=row.workspace,
                options=entry.options,
                redact=Redaction(own or self._redactor),
                meter=meter,
                goes_on=not create,
            )
        except BaseException as error:
            log.discard() if create else log.close()
            if isinstance(error, Exception) and not isinstance(error, Conflict | DatabaseGone):
                entry.could_not_open(fault := of(error), row.workspace)
                if fault is not error:
                    raise fault from error
            raise
        entry.worked()
        return LiveSession(session, entry, row, meter, self.approvals, self.messages, self._told)

    def _log(self, entry: AgentEntry, row: SessionRow, resume: bool) -> tuple[FileLog, bool]:
        """The session's log, and whether it is new."""
        if resume:
            # A process may have died between the row and the log.
            with suppress(SessionNotFound):
                return self.store.open(row.id), False
        return self.store.create(row.id, row.workspace, entry.name), True

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(SWEEP_SECONDS, self.evict_seconds))
            for live in tuple(self._live.values()):
                if live.is_idle and loop.time() - live.used >= self.evict_seconds:
                    try:
                        await self._doors.whole(self._let_go(live))
                    except Exception:
                        logger.exception("session %s could not be let go of in good order", live.id)

    async def _let_go(self, live: LiveSession) -> None:
        async with self._doors.alone(live.id):
            # It may have been woken again while we waited.
            if live.is_idle and self._live.get(live.id) is live:
                del self._live[live.id]
                try:
                    await self.acts.add(live.id, live.session.seq, "let_go")
                finally:
                    await live.close()
