"""An open session: what the exchange adds to `core.session`.

It is a sink of the session: it keeps the rows (approvals, messages, usage) in step with its events, and enforces the
time limit of turns. Rows are written in the order of the events, in a thread; callers that need to see them await
`written`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from trunkline.base import jsontext, log_context
from trunkline.base.vocabulary import Mode
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
from trunkline.core.fault_kinds import of_kind
from trunkline.core.faults import AgentBusy, BudgetExceeded, Fault, SessionNotFound, StoreUnavailable, UnknownCall
from trunkline.core.keeper import Removed, When
from trunkline.core.session import Session
from trunkline.core.turns import State
from trunkline.core.usage import Usage
from trunkline.exchange.acts import Act, Acts
from trunkline.exchange.approvals import AlreadyDecided, Approval, ApprovalStore, digest
from trunkline.exchange.budgets import SessionMeter
from trunkline.exchange.client_seat import ClientSeat
from trunkline.exchange.directory import AgentEntry
from trunkline.exchange.messages import Messages, QueuedMessage, begun
from trunkline.exchange.row_writer import RowWriter
from trunkline.exchange.session_rows import BornRow, SessionRow
from trunkline.exchange.turn_fold import TurnFold
from trunkline.exchange.turn_rows import TurnRow, mark, put

#: Kinds of faults that are about the agent, not about the request.
ILL = frozenset({"agent", "crashed", "timeout", "internal"})

#: The events that concern the rows and the timer. The others are skipped: most are words, and there are thousands.
_NOTED = frozenset(
    {Failed, ToolAnswered, ToolCancelled, ToolFinished, ToolRequested, ToolStarted, TurnEnded, TurnStarted}
)

Told = Callable[[Approval], None]


class LiveSession:
    """One session of one agent, with its rows, meter and time limit."""

    congested = False
    is_followed = False
    """Whether another node owns it, and it is only watched here."""

    def __init__(
        self,
        session: Session,
        entry: AgentEntry,
        row: SessionRow,
        meter: SessionMeter,
        approvals: ApprovalStore,
        messages: Messages,
        told: Told,
        behind: Callable[[], None] = lambda: None,
    ) -> None:
        """`told` is called for each approval that a person must decide on; `behind` when the log has a turn of which
        there is no row."""
        self.session = session
        self.entry = entry
        self.row = row
        """As it was when the session was opened."""
        self.meter = meter
        self.seats: dict[ClientSeat, Removed] = {}
        """The attached clients, and what to call for each when the session is removed."""
        self.used = 0.0
        """When it was last used, by the loop's clock."""
        self.sending = asyncio.Lock()
        """Held while a message is accepted: one at a time."""
        self._approvals = approvals
        self._messages = messages
        self._told = told
        self._behind = behind
        self._fold = None if row.passing else TurnFold(session.id, entry.name)
        self._loop = asyncio.get_running_loop()
        self._rows = RowWriter(session.id)
        self._done: list[Act] = []
        """What clients did and is not noted yet."""
        self._born: BornRow | None = None
        self._asked = {request.call_id: digest(request) for request in session.waiting}
        """The calls that await a person, as they were shown: without secrets, unlike the agent's own."""
        self._told_of: set[str] = set()
        """The questions of the turn in progress that people were told of."""
        self._clock: asyncio.TimerHandle | None = None
        self._timed = session.turn
        """The turn that is being timed."""
        self._left: float | None = meter.seconds_per_turn if session.turn else None
        self._began = 0.0
        self._fault: Fault | None = None
        self._reasons: dict[str, str] = {}
        """The reasons for denials that have not been shown as answers yet."""
        self._wires: dict[str, str] = {}
        """The wires by which answers came that have not been shown yet."""
        self._sender = ""
        """The authors of the messages being answered, as far as they were shown."""
        if session.turn:
            self._sender = self._now()[1]
        meter.keep, meter.now = self._rows.write, self._now
        session.deciding = self._deciding
        if self._fold is not None:
            session.stopped = self._fold.stopped
        session.attach(self)
        self.touch()

    @property
    def id(self) -> str:
        """The session's id."""
        return self.session.id

    @property
    def agent(self) -> str:
        """The agent's name."""
        return self.entry.name

    @property
    def clients(self) -> int:
        """The number of attached clients."""
        return len(self.seats)

    @property
    def is_idle(self) -> bool:
        """Whether it can be closed: nothing runs or waits, and no client is attached."""
        at_rest = self.session.status in (State.IDLE, State.CLOSED) and not self._rows.is_busy
        return at_rest and not self.clients and not self.sending.locked()

    def touch(self) -> None:
        """Note that it is in use."""
        self.used = self._loop.time()

    async def submit_once(self, message: UserMessage) -> int:
        """Submit a message that is not kept, for somebody who hears what becomes of it, and may send it again; gives
        the number of its turn, in the tick in which the session has it.

        A turn that has begun has its end, if need be after the next start.

        Raises:
            SessionNotFound: the session was removed.
            AgentBusy: too many messages are waiting.
        """
        async with self.sending:
            # The row comes first: a process that dies when only the log knows of the turn leaves no other trace of it.
            await self.meter.turn_expected(self.session.latest + 1)
            if self.session.status is State.CLOSED:
                raise SessionNotFound("The session was removed.")
            if self.session.is_closing:
                # What it took now, nobody would answer.
                raise StoreUnavailable("The session is being closed here.", retryable=True)
            return self.session.submit(message)

    def answer(self, call_id: str, decision: Decision, by: str) -> None:
        """Decide on a tool call that waits.

        Raises:
            UnknownCall: none of that id does.
        """
        self.session.answer(call_id, decision, by)

    def ask_again(self) -> None:
        """See that there is a row for each question that waits and has been shown."""
        turn = self.session.turn
        for request in self.session.waiting:
            if request.call_id in self._asked:
                self._rows.write(partial(self._ask, turn, request))

    async def set_mode(self, mode: Mode) -> None:
        """Change the approval mode."""
        self.session.set_mode(mode)

    async def decide(self, approval: Approval, decision: Decision, by: str) -> None:
        """Answer an approval. Once this returns, the answer survives the process.

        Raises:
            AlreadyDecided: it is no longer pending, or the call is not the one that was asked about.
            StoreUnavailable: it is pending, and cannot be answered right now: the session is being closed here.
        """
        # The agent's own id, which a row cannot always hold.
        call_id = next((id for id in self._asked if jsontext.whole(id) == approval.call_id), "")
        try:
            if self._asked.get(call_id) != approval.digest or self.session.turn != approval.turn:
                raise UnknownCall("It is no longer waiting for an answer.")
            self.answer(call_id, decision, by)
        except UnknownCall as fault:
            await self.written()
            found = await self._approvals.get(approval.id) or approval
            if found.state == "pending" and self.session.is_closing:
                raise StoreUnavailable(str(fault), retryable=True) from None
            raise AlreadyDecided(found) from None
        await self.written()
        if isinstance(decision, Deny) and decision.reason:
            await self._approvals.explained(approval.id, decision.reason)

    def follow(self, born: BornRow) -> None:
        """Write no row before the session's own."""
        self._born = born
        if not born.is_written:
            self._rows.write_later(born.written)

    def check_free(self, when: When) -> None:
        """See that one more message can be accepted.

        Raises:
            AgentBusy: a turn is in progress, and the message must not wait.
            DatabaseGone: not even the session's own row could be written.
        """
        if when == "reject" and self.session.status is not State.IDLE:
            raise AgentBusy("The agent is busy with another message.")
        if self._born is not None:
            self._born.check()

    async def written(self) -> None:
        """Wait until the rows reflect everything that has happened so far.

        Raises:
            DatabaseGone: they cannot be written now.
        """
        await self.session.settled()
        await self._rows.written()

    async def known(self, msg_id: str) -> QueuedMessage | None:
        """The message with that id, if it was accepted before, with the turn in which it is answered.

        Raises:
            DatabaseGone: nobody knows now.
        """
        found = await self._messages.find(self.id, msg_id)
        if found is not None and not found.turn:
            # Its turn is written down behind the answer.
            await self.written()
            found = await self._messages.find(self.id, msg_id) or found
            found = found.replace(turn=found.turn or self.session.state.turns)
        return found

    def note(self, act: Act, acts: Acts) -> None:
        """Note what somebody did, after the rows already queued, together with everything else that is done until then:
        a hundred clients may come and go at once."""
        self._done.append(act)
        if len(self._done) == 1:
            self._rows.write_later(partial(self._keep, acts, []))

    def placed(self, number: int, turn: int) -> None:
        """Note, after the rows already queued, in which turn a message that waits will be answered."""
        self._rows.write(lambda: self._messages.placed(number, turn))

    async def _keep(self, acts: Acts, taken: list[Act]) -> None:
        """`taken`: what an earlier try could not write."""
        taken += self._done
        self._done.clear()
        await acts.keep(self.id, taken)

    async def close(self) -> None:
        """End the turn in progress, and close the agent."""
        self._stop_clock()
        await self.session.close()
        await self._rows.end()

    async def suspend(self) -> None:
        """Close the agent. Pending approvals remain pending when the session is opened again."""
        self._stop_clock()
        await self.session.suspend()
        await self._rows.end()

    async def abandon(self) -> None:
        """Let go of it at once: it is another node's."""
        self._stop_clock()
        await self.session.abandon()
        await self._rows.end()

    # The session's sink.

    def show(self, envelopes: Sequence[Envelope]) -> None:
        """Update the rows and the timer."""
        self.touch()
        for envelope in envelopes:
            row = None if self._fold is None else self._fold.take(envelope)
            if type(envelope.event) in _NOTED:
                self._note(envelope.turn, envelope, row)

    async def drain(self) -> None:
        """Nobody waits for rows."""

    def _note(self, turn: int, envelope: Envelope, row: TurnRow | None) -> None:
        approvals, id = self._approvals, self.id
        match envelope.event:
            case TurnStarted(message=message):
                self._fault = None
                self._sender = message.sender or ""
                self._timed, self._left = turn, self.meter.seconds_per_turn
                self._start_clock()
                self._rows.write_later(lambda: self._began_turn(turn, message))
            case ToolRequested() as request:
                self._pause_clock()
                self._asked[request.call_id] = digest(request)
                self._rows.write(lambda: self._ask(turn, request))
            case ToolAnswered(call_id=call_id, approved=approved, by=by):
                self._start_clock()
                self._asked.pop(call_id, None)
                why, wire = self._reasons.pop(call_id, None), self._wires.pop(call_id, None)
                answer = partial(approvals.answered, id, turn, call_id, approved=approved, by=by, reason=why, wire=wire)
                self._rows.write(answer)
            case ToolStarted(call_id=call_id) | ToolFinished(call_id=call_id):
                # It ran without an answer, which is up to the agent; the question is settled.
                self._close_call(turn, call_id, "The agent continued without an answer.")
            case ToolCancelled(call_id=call_id, reason=reason):
                self._close_call(turn, call_id, reason)
            case Failed(kind=kind, message=text):
                self._fault = of_kind(kind, text)
            case TurnEnded(outcome=outcome, usage=usage):
                for call_id in tuple(self._asked):
                    self._close_call(turn, call_id, "The turn ended before there was an answer.")
                self._told_of.clear()
                self._stop_clock()
                self._left = None
                self._note_health(outcome)
                sender = self._sender
                self._rows.write(lambda: self._ended_turn(turn, usage, sender, row))

    def _close_call(self, turn: int, call_id: str, reason: str) -> None:
        self._start_clock()
        if self._asked.pop(call_id, None) is not None:
            self._rows.write(lambda: self._approvals.ended(self.id, turn, call_id, reason))

    def _note_health(self, outcome: str) -> None:
        if outcome == "success":
            self.entry.worked()
        elif self._fault is not None and self._fault.kind in ILL:
            self.entry.failed(self._fault)

    async def _began_turn(self, turn: int, message: UserMessage) -> None:
        # Together: wherever the process dies, one of the two rows tells that the turn has no end yet.
        await self.meter.turn_began(turn, partial(begun, session=self.id, turn=turn, message=message))

    async def _ended_turn(self, turn: int, usage: Usage | None, sender: str, row: TurnRow | None) -> None:
        # Together: a turn that is counted has its row, or is known to have none.
        if row is not None:
            await self.meter.turn_ended(turn, usage, sender, partial(put, row=row))
        elif self._fold is not None:
            await self.meter.turn_ended(turn, usage, sender, partial(mark, session=self.id))
            self._behind()
        else:
            await self.meter.turn_ended(turn, usage, sender)

    def _deciding(self, call_id: str, decision: Decision) -> None:
        """The row gets the reason of a denial, and the wire."""
        if isinstance(decision, Deny) and decision.reason:
            self._reasons[call_id] = decision.reason
        if wire := log_context.known("").get("wire"):
            self._wires[call_id] = str(wire)

    def _now(self) -> tuple[int, str]:
        """The turn in progress, and who sent its message."""
        turn = self.session.turn
        found = self.session.state.open_turns.get(turn)
        return turn, (found.message.sender or "") if found else ""

    async def _ask(self, turn: int, request: ToolRequested) -> None:
        approval = await self._approvals.asked(self.id, self.agent, turn, request)
        if approval.id not in self._told_of:
            self._told_of.add(approval.id)
            self._told(approval)

    # The time limit of a turn. The clock stops while a person is asked.

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
        # The end of a turn is shown once it is on disk; by then the next one may have begun.
        if self.session.turn == self._timed:
            seconds = self.meter.seconds_per_turn or 0.0
            self.session.break_off(
                BudgetExceeded(f"The turn took longer than its budget of {seconds:g} s.", retryable=False)
            )
