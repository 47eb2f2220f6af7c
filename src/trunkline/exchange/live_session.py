"""A session at work: what the exchange adds to `core.session`.

It is a sink of the session: from what happens there it keeps the rows up to date (approvals, messages, usage), and it
holds turns to their time. Rows are written in the order of the events and beside the event loop; whoever needs to see
them waits for `written`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from trunkline.core.agent import Decision, Deny
from trunkline.core.events import (
    Envelope,
    Failed,
    ToolAnswered,
    ToolCancelled,
    ToolFinished,
    ToolRequested,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UserMessage,
)
from trunkline.core.faults import BudgetExceeded, Fault, UnknownCall, of_kind
from trunkline.core.session import Session
from trunkline.core.turns import State
from trunkline.exchange.approvals import AlreadyDecided, Approval, ApprovalStore, digest
from trunkline.exchange.budgets import SessionMeter
from trunkline.exchange.directory import AgentEntry
from trunkline.exchange.messages import Messages

logger = logging.getLogger(__name__)

#: Kinds of faults that say something about the agent, and nothing about what it was asked.
ILL = frozenset({"agent", "crashed", "timeout", "internal"})

Told = Callable[[Approval], None]
#: Hears that a session was removed.
Removed = Callable[[], None]
Work = Callable[[], Awaitable[object]]


class LiveSession:
    """One session of one agent, with everything that watches over it."""

    congested = False

    def __init__(
        self,
        session: Session,
        entry: AgentEntry,
        meter: SessionMeter,
        approvals: ApprovalStore,
        messages: Messages,
        told: Told,
    ) -> None:
        """`told` hears of each approval that a person must give."""
        self.session = session
        self.entry = entry
        self.meter = meter
        self.seats: dict[object, Removed] = {}
        """Those who are attached now, and how each hears that the session was removed."""
        self.used = 0.0
        """When it was used last, by the loop's clock."""
        self.sending = asyncio.Lock()
        """Held while a message is taken in: one after the other."""
        self._approvals = approvals
        self._messages = messages
        self._told = told
        self._loop = asyncio.get_running_loop()
        self._rows: deque[Work] = deque()
        self._writing: asyncio.Task[None] | None = None
        self._asked = {request.call_id: digest(request) for request in session.waiting}
        """The calls that a person is asked about, as they were shown: without secrets, unlike the agent's own."""
        self._clock: asyncio.TimerHandle | None = None
        self._timed = session.turn
        """The turn whose time is taken."""
        self._left: float | None = meter.seconds_per_turn if session.turn else None
        self._began = 0.0
        self._fault: Fault | None = None
        self._reasons: dict[str, str] = {}
        """Why calls were denied that have not been shown as answered yet."""
        self._sender = ""
        """Who asked what is being answered, as far as it was shown."""
        if session.turn:
            self._sender = self._now()[1]
        meter.keep, meter.now = self._write, self._now
        session.attach(self)
        self.touch()

    @property
    def id(self) -> str:
        """The session's id."""
        return self.session.id

    @property
    def agent(self) -> str:
        """The name of who answers."""
        return self.entry.name

    @property
    def clients(self) -> int:
        """How many are attached now."""
        return len(self.seats)

    @property
    def is_idle(self) -> bool:
        """Whether nobody would miss it: nothing runs, nothing waits, nobody watches."""
        at_rest = self.session.status in (State.IDLE, State.CLOSED) and self._writing is None
        return at_rest and not self.clients and not self.sending.locked()

    def touch(self) -> None:
        """It is being used."""
        self.used = self._loop.time()

    async def decide(self, approval: Approval, decision: Decision, by: str) -> None:
        """Answer what a row asks. Afterwards the answer survives the process.

        Raises:
            AlreadyDecided: it is not pending any more, or the call is not the one that was asked about.
        """
        try:
            if self._asked.get(approval.call_id) != approval.digest or self.session.turn != approval.turn:
                raise UnknownCall("It is not asked any more.")
            self.session.answer(approval.call_id, decision, by)
        except UnknownCall:
            await self.written()
            raise AlreadyDecided(await self._approvals.get(approval.id) or approval) from None
        if isinstance(decision, Deny) and decision.reason:
            self._reasons[approval.call_id] = decision.reason
        await self.written()
        if isinstance(decision, Deny) and decision.reason:
            await self._approvals.explained(approval.id, decision.reason)

    async def written(self) -> None:
        """Wait until the rows know all that has happened until now.

        Those that begin meanwhile are not waited for: a session that is never at rest must not keep anybody.
        """
        await self.session.settled()
        if self._writing is not None:
            reached = asyncio.Event()
            self._write(lambda: _set(reached))
            await reached.wait()

    def write_row(self, work: Work) -> None:
        """Write one more row, behind those that are being written."""
        self._write(work)

    async def close(self) -> None:
        """End what runs, and let go of the agent."""
        self._stop_clock()
        await self.session.close()
        await self.written()

    async def suspend(self) -> None:
        """Let go of the agent. Who is being asked is still asked when the session is opened again."""
        self._stop_clock()
        await self.session.suspend()
        await self.written()

    # The session's sink.

    def show(self, envelopes: Sequence[Envelope]) -> None:
        """What happened: keep the rows and the clock."""
        self.touch()
        for envelope in envelopes:
            self._note(envelope.turn, envelope)

    async def drain(self) -> None:
        """Nobody waits for rows."""

    def _note(self, turn: int, envelope: Envelope) -> None:
        approvals, id = self._approvals, self.id
        match envelope.event:
            case TurnStarted(message=message):
                self._fault = None
                self._sender = message.sender or ""
                self._timed, self._left = turn, self.meter.seconds_per_turn
                self._start_clock()
                self._write(lambda: self._began_turn(turn, message))
            case ToolRequested() as request:
                self._pause_clock()
                self._asked[request.call_id] = digest(request)
                self._write(lambda: self._ask(turn, request))
            case ToolAnswered(call_id=call_id, approved=approved, by=by):
                self._start_clock()
                self._asked.pop(call_id, None)
                why = self._reasons.pop(call_id, None)
                self._write(lambda: approvals.answered(id, turn, call_id, approved=approved, by=by, reason=why))
            case ToolStarted(call_id=call_id) | ToolFinished(call_id=call_id):
                # Run without an answer: the agent's own affair, and nobody needs to be asked any more.
                self._close_call(turn, call_id, "The agent went on without an answer.")
            case ToolCancelled(call_id=call_id, reason=reason):
                self._close_call(turn, call_id, reason)
            case Failed(kind=kind, message=text):
                self._fault = of_kind(kind, text)
            case TurnEnded(outcome=outcome, usage=usage):
                for call_id in tuple(self._asked):
                    self._close_call(turn, call_id, "The turn ended before there was an answer.")
                self._stop_clock()
                self._left = None
                self._note_health(outcome)
                sender = self._sender
                self._write(lambda: self.meter.turn_ended(turn, usage, sender))

    def _close_call(self, turn: int, call_id: str, reason: str) -> None:
        self._start_clock()
        if self._asked.pop(call_id, None) is not None:
            self._write(lambda: self._approvals.ended(self.id, turn, call_id, reason))

    def _note_health(self, outcome: str) -> None:
        if outcome == "success":
            self.entry.worked()
        elif self._fault is not None and self._fault.kind in ILL:
            self.entry.failed(self._fault)

    async def _began_turn(self, turn: int, message: UserMessage) -> None:
        await self._messages.began(self.id, turn, message)
        await self.meter.turn_began(turn)

    def _now(self) -> tuple[int, str]:
        """The turn in progress, and who asked."""
        turn = self.session.turn
        found = self.session.state.open_turns.get(turn)
        return turn, (found.message.sender or "") if found else ""

    async def _ask(self, turn: int, request: ToolRequested) -> None:
        self._told(await self._approvals.asked(self.id, self.agent, turn, request))

    # Rows are written one after the other.

    def _write(self, work: Work) -> None:
        self._rows.append(work)
        if self._writing is None:
            self._writing = self._loop.create_task(self._write_rows(), name="rows of a session")

    async def _write_rows(self) -> None:
        try:
            while self._rows:
                work = self._rows.popleft()
                try:
                    await work()
                except Exception:
                    # The log has it; the rows are made good when the session is opened the next time.
                    logger.exception("a row of session %s could not be written", self.id)
        finally:
            self._writing = None

    # A turn's time. It does not pass while a person is asked.

    def _start_clock(self) -> None:
        if self._left is not None and self._clock is None and self.session.status is not State.AWAITING_APPROVAL:
            self._began = self._loop.time()
            self._clock = self._loop.call_later(self._left, self._late)

    def _pause_clock(self) -> None:
        if self._clock is not None and self._left is not None:
            self._left = max(0.0, self._left - (self._loop.time() - self._began))
        self._stop_clock()

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _late(self) -> None:
        self._clock = None
        # The end of a turn is shown when the disk has it; by then the next one may be under way.
        if self.session.turn == self._timed:
            seconds = self.meter.seconds_per_turn or 0.0
            self.session.break_off(
                BudgetExceeded(f"The turn took longer than its budget of {seconds:g} s.", retryable=False)
            )


async def _set(event: asyncio.Event) -> None:
    event.set()
