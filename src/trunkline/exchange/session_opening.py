"""Opens one session: its log, its agent, and the rows that another process left behind."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from trunkline.base import log_context
from trunkline.base.redact import Redactor
from trunkline.core.agent import Agent
from trunkline.core.events import Envelope
from trunkline.core.fault_kinds import of
from trunkline.core.faults import StoreUnavailable
from trunkline.core.redaction import Redaction
from trunkline.core.session import Session
from trunkline.exchange.acts import Acts
from trunkline.exchange.approvals import ApprovalStore
from trunkline.exchange.budgets import Budgets
from trunkline.exchange.directory import AgentEntry
from trunkline.exchange.live_session import LiveSession, Told
from trunkline.exchange.messages import Messages, QueuedMessage, begun_in
from trunkline.exchange.places import Places
from trunkline.exchange.session_rows import SessionRow
from trunkline.exchange.tally import Tallies
from trunkline.store.copying import copy
from trunkline.store.database import Conflict, DatabaseGone

#: The kind of an agent that is a graph.
GRAPH = "graph"

#: Why an approval is closed that outlived its process. A secret in a call is not in the log.
CANNOT_CONTINUE = "The exchange ended before there was an answer, and this agent cannot continue a turn after that."
CANNOT_RUN = "The exchange ended before there was an answer, and a secret that the call needs was not kept."

LOST = "Another node took the session while it was being opened here."


class SessionOpening:
    """What it takes."""

    def __init__(
        self,
        approvals: ApprovalStore,
        messages: Messages,
        acts: Acts,
        tallies: Tallies,
        budgets: Budgets,
        redactor: Redactor,
        told: Told,
        places: Places,
        behind: Callable[[], None],
    ) -> None:
        """`behind` is called when a log has a turn of which there is no row."""
        self._approvals = approvals
        self._messages = messages
        self._acts = acts
        self._tallies = tallies
        self._budgets = budgets
        self._redactor = redactor
        self._told = told
        self._places = places
        self._behind = behind

    async def opened(
        self, entry: AgentEntry, agent: Agent, row: SessionRow, *, resume: bool, queued: Sequence[QueuedMessage] = ()
    ) -> LiveSession:
        """The session, with its agent. `queued`: messages that wait according to the rows.

        Raises:
            Fault: it cannot be opened.
        """
        log, create = await self._places.log(row, resume=resume)
        meter = self._budgets.meter(entry.name, row.id, getattr(getattr(agent, "settings", None), "prices", None))
        own: Redactor | None = getattr(agent, "redactor", None)
        try:
            if queued:
                items = log.read(min(each.seq for each in queued))
                for turn, message in await asyncio.to_thread(begun_in, items, queued):
                    await self._messages.began(row.id, turn, message)
            with log_context.about(agent=entry.name):
                session = await Session.open(
                    agent,
                    log,
                    entry.policy(agent),
                    resume=not create,
                    mode=entry.settings.mode if create else None,
                    workspace=row.workspace,
                    options=_options(entry),
                    redact=Redaction(own or self._redactor),
                    meter=meter,
                    goes_on=not create,
                    called=entry.name,
                )
        except BaseException as error:
            log.discard() if create else log.close()
            if isinstance(error, Exception) and not isinstance(error, Conflict | DatabaseGone):
                entry.could_not_open(fault := of(error), row.workspace)
                if fault is not error:
                    raise fault from error
            raise
        entry.worked()
        live = LiveSession(session, entry, row, meter, self._approvals, self._messages, self._told, self._behind)
        try:
            self._check_kept(session)
        except StoreUnavailable:
            await live.abandon()
            raise
        return live

    async def gave_up(self, session_id: str, why: str) -> None:
        """A session cannot be woken here: nothing in it awaits an answer any more, unless another node has it."""
        if not await self._places.is_elsewhere(session_id):
            await self._approvals.close_all(session_id, why)

    def _check_kept(self, session: Session) -> None:
        """See that a session is still ours. Until others find it, nobody can be told that it was lost.

        Raises:
            StoreUnavailable: it is not.
        """
        if session.is_lost or not self._places.is_ours(session.id):
            raise StoreUnavailable(LOST, retryable=True, hint="Try again soon.")

    @asynccontextmanager
    async def beginning(self, row: SessionRow, events: Iterator[Envelope]) -> AsyncIterator[int]:
        """A new session's log that starts with these events, and how many turns they have; nothing is left of it if the
        block fails.

        Raises:
            ConfigError: the log cannot be written.
        """
        await self._places.claim(row.id)
        log, _ = await self._places.log(row, resume=False)
        try:
            turns = await asyncio.to_thread(copy, events, log)
            await log.sync()
            yield turns
        except BaseException:
            log.discard()
            raise
        log.close()

    async def take_up(self, live: LiveSession) -> None:
        """Resume what the last process left: rows that are behind the log, and waiting messages.

        Raises:
            StoreUnavailable: it was lost meanwhile.
        """
        await self._acts.add(live.id, live.session.seq, "woken", detail=f"process {os.getpid()}")
        turn, requests = live.session.turn, live.session.waiting
        live.session.flush()
        await self._tallies.catch_up(live.id, live.meter.catch_up, live.session.state.turns, but=turn)
        self._behind()
        asked = frozenset((turn, request.call_id) for request in requests)
        continues = live.entry.capabilities is not None and live.entry.capabilities.continues
        self._check_kept(live.session)
        await self._approvals.close_all(live.id, CANNOT_RUN if continues else CANNOT_CONTINUE, but=asked)
        known = {each.id for each in await self._approvals.found("pending", live.id)}
        for request in requests:
            approval = await self._approvals.asked(live.id, live.agent, turn, request)
            if approval.id not in known:
                self._told(approval)
        for queued in await self._messages.waiting(live.id):
            # The row first: then whoever has kept it cannot forget it any more.
            if await self._messages.placed(queued.number, live.session.latest + 1):
                live.session.submit(queued.message)
        self._check_kept(live.session)


def _options(entry: AgentEntry) -> Mapping[str, Any]:
    """Those of an agent's conversations. A graph tells which way each turn takes: people can look at it afterwards."""
    return {"diagnostics": True, **entry.options} if entry.settings.kind == GRAPH else entry.options
