"""The turns of a session: one state table, and the pure machine around it.

Rule 1: everything that decides what a turn does lives in this file. Rule 2: nothing here waits, reads a clock or
knows a wire. Commands and the agent's events go in; `Action`s come out, for `core.performer` to carry out in order.

    IDLE ──begin──▶ RUNNING ◀──settle── AWAITING_APPROVAL
      ▲                │ │ ───ask─────────▶ │
      │                │ └──stop──▶ ENDING ◀┘ stop
      └──────end───────┴─────end──────┘            IDLE ──close──▶ CLOSED

What always holds, and is explored exhaustively by a test:

- every message gets exactly one `TurnStarted` and exactly one `TurnEnded`, nothing of it before or after them;
- every call that was shown gets exactly one `ToolFinished` or `ToolCancelled`, before its turn ends;
- every request that is not shown or not yet answered is answered: by the policy, by a person, or by the end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from enum import Enum
from typing import Literal

from trunkline.base.vocabulary import EXIT_PLAN, Mode
from trunkline.core.actions import Abandon, Action, Begin, Cancel, Decide, Emit, GoOn
from trunkline.core.agent import Approve, Decision, Deny
from trunkline.core.approvals import Policy
from trunkline.core.events import (
    Event,
    Failed,
    Granted,
    GrantRevoked,
    ModeChanged,
    Notice,
    Outcome,
    Steered,
    ToolAnswered,
    ToolCancelled,
    ToolFinished,
    ToolJudged,
    ToolRequested,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UserMessage,
)
from trunkline.core.faults import AgentBusy, AgentFailed, Fault, UnknownCall
from trunkline.core.grants import Grant, grant_for
from trunkline.core.turn_record import OPEN_CALLS, CallState, TurnRecord, dropped
from trunkline.core.usage import NOTHING_USED, Usage

#: Messages that wait while a turn runs. Those beyond are refused when their turn comes, and only their ids are kept.
MAX_QUEUED = 1000
MAX_QUEUED_CHARS = 64 * 1024 * 1024
#: Messages that wait, those to be refused included. Beyond, a host is not even promised a refusal in its place.
MAX_WAITING = 10_000

#: How much of a peer's words is repeated in an error.
SHOWN_CHARS = 80

STOPPED = "Stopped by user"
CLOSED = "The session was closed"
DENIED = "User denied"
DROPPED = "Stopped before this message was answered"

#: What becomes of a message that comes in the middle of a turn: it waits, is refused, or is forgotten.
BusyPolicy = Literal["queue", "reject", "skip"]


class State(Enum):
    """Where a session is."""

    IDLE = "idle"
    RUNNING = "running"
    AWAITING_APPROVAL = "awaiting_approval"
    ENDING = "ending"
    CLOSED = "closed"


class Step(Enum):
    """What moves it."""

    BEGIN = "begin"
    ASK = "ask"
    SETTLE = "settle"
    STOP = "stop"
    END = "end"
    CLOSE = "close"


TRANSITIONS: dict[tuple[State, Step], State] = {
    (State.IDLE, Step.BEGIN): State.RUNNING,
    (State.IDLE, Step.CLOSE): State.CLOSED,
    (State.RUNNING, Step.ASK): State.AWAITING_APPROVAL,
    (State.RUNNING, Step.STOP): State.ENDING,
    (State.RUNNING, Step.END): State.IDLE,
    (State.AWAITING_APPROVAL, Step.ASK): State.AWAITING_APPROVAL,
    (State.AWAITING_APPROVAL, Step.SETTLE): State.RUNNING,
    (State.AWAITING_APPROVAL, Step.STOP): State.ENDING,
    (State.AWAITING_APPROVAL, Step.END): State.IDLE,
    (State.ENDING, Step.END): State.IDLE,
}


class Turns:
    """The machine. Every method returns the actions to carry out, in order."""

    def __init__(self, policy: Policy, busy: BusyPolicy = "queue", *, turns_so_far: int = 0) -> None:
        self.policy = policy
        self.state, self.closing = State.IDLE, False
        self._busy = busy
        self._turns = turns_so_far
        self._turn: TurnRecord | None = None
        self.queue: deque[TurnRecord] = deque()
        """What waits, in order."""
        self.queued_chars = 0
        self._why = STOPPED

    @property
    def turn(self) -> int:
        """The number of the turn in progress; 0 between turns."""
        return self._turn.number if self._turn else 0

    @property
    def pending(self) -> tuple[ToolRequested, ...]:
        """The requests that wait for a person."""
        return tuple(self._turn.requests[call_id] for call_id in self._turn.pending) if self._turn else ()

    @property
    def unacknowledged(self) -> bool:
        """Whether a denial is on its way to the agent and not yet shown."""
        return self._turn is not None and bool(self._turn.denying)

    # What the host says.

    @property
    def latest(self) -> int:
        """The number of the latest message, whether it is being answered or waits."""
        return self._turns

    def submit(self, message: UserMessage, refusal: Fault | None = None) -> list[Action]:
        """A message to answer; with a `refusal`, one to refuse when its turn comes.

        Raises:
            AgentBusy: a turn is in progress and this wire does not queue, far too many messages wait already, or the
                session is closed. The message was not taken.
        """
        self.check_room()
        if self.state is not State.IDLE and self._busy == "skip":
            return []
        if self.closing:
            refusal = AgentBusy("The session is closing.")
        elif len(self.queue) >= MAX_QUEUED or self.queued_chars > MAX_QUEUED_CHARS:
            refusal = AgentBusy(f"Too many messages are waiting: {len(self.queue)}.")
            message = UserMessage("", id=message.id)
        self._turns += 1
        self.queue.append(TurnRecord(self._turns, message, refusal))
        self.queued_chars += len(message.text)
        return self._next() if self.state is State.IDLE else []

    def check_room(self) -> None:
        """Raise `AgentBusy` if a message would not be taken."""
        if self.state is State.CLOSED:
            raise AgentBusy("The session is closed.")
        if self.state is not State.IDLE and self._busy == "reject":
            raise AgentBusy("The agent is busy with another message.")
        if len(self.queue) >= MAX_WAITING:
            raise AgentBusy(f"{MAX_WAITING} messages are waiting: this one was not taken.")

    def forget_queue(self) -> None:
        """Leave the messages that wait to somebody else."""
        self.queue.clear()
        self.queued_chars = 0

    def go_on(self, number: int, message: UserMessage, waiting: Sequence[ToolRequested]) -> list[Action]:
        """Go on with a turn in which an earlier process was asking a person. Before anything else."""
        turn = self._turn = TurnRecord(number, message, None)
        self._turns = max(self._turns, number)
        self._move(Step.BEGIN)
        for request in waiting:
            turn.requests[request.call_id] = request
            turn.shown.add(request.call_id)
            turn.asked_before.add(request.call_id)
            turn.put(request.call_id, CallState.PENDING)
            self._move(Step.ASK)
        return [GoOn(number, message)]

    def steered(self, message: UserMessage) -> list[Action]:
        """The agent will read a message in the turn in progress."""
        return [Emit(self.turn, Steered(message))]

    def answer(self, call_id: str, decision: Decision, by: str = "") -> list[Action]:
        """A person's decision.

        Raises:
            UnknownCall: no such call waits for one.
        """
        turn = self._turn
        if turn is None or turn.calls.get(call_id) is not CallState.PENDING:
            raise UnknownCall(f"No tool call `{call_id[:SHOWN_CHARS]}` is waiting for an answer.")
        request = turn.requests[call_id]
        actions: list[Action] = [Emit(turn.number, ToolAnswered(call_id, isinstance(decision, Approve), by))]
        if isinstance(decision, Approve) and request.name == EXIT_PLAN:
            # Before the agent hears of it: what it does next is no longer only planning. Each plan is asked about.
            actions += [self._put_into(self.policy.mode_before_plan)] if self.policy.mode == "plan" else []
            decision = Approve()
        # What is granted is ours to remember, and to take back: the agent goes on asking.
        actions += self._decide(turn, call_id, Approve() if isinstance(decision, Approve) else decision)
        if isinstance(decision, Approve) and decision.scope == "always":
            grant = grant_for(request, narrow=decision.narrow, workspace=self.policy.workspace)
            if grant not in self.policy.grants:
                self.policy.grants[grant] = None
                actions.append(Emit(turn.number, Granted(**grant.members)))
        return actions + self.release()

    def revoke(self, grant: Grant) -> list[Action]:
        """Take a grant back; what runs already goes on."""
        known = self.policy.grants.pop(grant, self) is None
        return [Emit(self.turn, GrantRevoked(**grant.members))] if known else []

    def set_mode(self, mode: Mode) -> list[Action]:
        """Change the approval mode; what it allows is released."""
        return [self._put_into(mode), *self.release()]

    def stop(self, why: str = STOPPED, only: int | None = None) -> list[Action]:
        """Stop the turn in progress and drop what waits behind it; with `only`, that turn alone. When idle, nothing."""
        turn = self._turn
        dropped(self.queue, only)
        if turn is None or self.state is State.ENDING or only not in (None, turn.number):
            return []
        actions: list[Action] = []
        for call_id in (*turn.pending, *turn.denying):
            actions.append(self._cancelled(turn, call_id, turn.reasons.get(call_id, why)))
        self._why = why
        self._move(Step.STOP)
        return [*actions, Cancel(turn.number)]

    def close(self) -> list[Action]:
        """Stop, and refuse what comes later."""
        self.closing = True
        if self.state is State.IDLE:
            self._move(Step.CLOSE)
            return []
        return self.stop(CLOSED)

    # What the agent says and does. Each names its turn: a late word of an earlier turn must not touch a later one.

    def agent_says(self, turn_number: int, event: Event) -> list[Action]:
        """An event of the agent."""
        turn = self._turn
        if turn is None or turn.number != turn_number:
            return []
        if isinstance(event, TurnEnded):
            return self._end(event.outcome, event.usage)
        acknowledged = self._acknowledge(turn)
        match event:
            case ToolRequested():
                return acknowledged + self._requested(turn, event)
            case ToolStarted(call_id=call_id, name=name):
                return acknowledged + self._started(turn, call_id, name)
            case ToolFinished():
                return acknowledged + self._finished(turn, event)
            case ToolCancelled(call_id=call_id):
                call = turn.calls.get(call_id)
                if call is CallState.CLOSED or (call is CallState.ALLOWED and call_id not in turn.shown):
                    # Over, or allowed by the policy and never begun: nobody has seen it, and nobody misses its end.
                    turn.put(call_id, CallState.CLOSED)
                    return acknowledged
                cancelled = self._cancelled(turn, call_id, event.reason)
                self._settle()
                return [*acknowledged, cancelled]
            case _:
                turn.failed = turn.failed or isinstance(event, Failed)
                return [*acknowledged, Emit(turn.number, event)]

    def agent_failed(self, turn_number: int, fault: Fault) -> list[Action]:
        """The agent's iterator raised. After a stop that is how some agents end, and no failure."""
        turn = self._turn
        if turn is None or turn.number != turn_number:
            return []
        if self.state is State.ENDING:
            return self._end("cancelled", None)
        failed = Failed(fault.kind, str(fault), fault.retryable)
        return [*self.agent_says(turn_number, failed), *self._end("error", None)]

    def fail(self, turn_number: int, fault: Fault) -> list[Action]:
        """The turn cannot go on, although the agent has not ended it."""
        actions = self.agent_failed(turn_number, fault)
        return [Abandon(turn_number), *actions] if actions else []

    def agent_gone(self, turn_number: int) -> list[Action]:
        """The agent's iterator ended without a `TurnEnded`."""
        return self.agent_failed(turn_number, AgentFailed("The agent stopped in the middle of its answer."))

    def resolved(self, turn_number: int, call_id: str) -> list[Action]:
        """The agent has been told a decision."""
        turn = self._turn
        if turn is None or turn.number != turn_number or turn.calls.get(call_id) is not CallState.DENYING:
            return []
        return [self._cancelled(turn, call_id, turn.reasons[call_id])]

    def expired(self, turn_number: int, usage: Usage | None = None) -> list[Action]:
        """The agent was asked to stop and did not end in time."""
        turn = self._turn
        if turn is None or turn.number != turn_number or self.state is not State.ENDING:
            return []
        return self._end("cancelled", usage)

    # How it is done.

    def _move(self, step: Step) -> None:
        self.state = TRANSITIONS[self.state, step]

    def _next(self) -> list[Action]:
        """Begin the next message that is to be answered; the ones before it that are not get their two ends."""
        actions: list[Action] = []
        while self.queue:
            turn = self.queue.popleft()
            self.queued_chars -= len(turn.message.text)
            if turn.dropped:
                actions += self._bracketed(turn, Notice(DROPPED), "cancelled")
            elif turn.refusal is not None:
                actions += self._refused(turn, turn.refusal)
            else:
                self._turn = turn
                self._move(Step.BEGIN)
                return [*actions, Emit(turn.number, TurnStarted(turn.message)), Begin(turn.number, turn.message)]
        if self.closing:
            self._move(Step.CLOSE)
        return actions

    def _refused(self, turn: TurnRecord, fault: Fault) -> list[Action]:
        return self._bracketed(turn, Failed(fault.kind, str(fault), fault.retryable), "error")

    @staticmethod
    def _bracketed(turn: TurnRecord, event: Event, outcome: Outcome) -> list[Action]:
        """A whole turn at once, for a message that no agent sees."""
        events = (TurnStarted(turn.message), event, TurnEnded(outcome, NOTHING_USED))
        return [Emit(turn.number, each) for each in events]

    def _requested(self, turn: TurnRecord, request: ToolRequested) -> list[Action]:
        call = turn.calls.get(request.call_id)
        if request.call_id in turn.asked_before and request == turn.requests[request.call_id]:
            # An earlier process asked; by now there may be an answer.
            turn.asked_before.remove(request.call_id)
            return []
        if call is CallState.PENDING and request == turn.requests[request.call_id]:
            # The same once more; its answer will come.
            return []
        if call in OPEN_CALLS:
            # An answer could not tell the two apart, and one of them nobody has approved.
            twice = f"The agent used the call id `{request.call_id[:SHOWN_CHARS]}` for two calls at once."
            return self.fail(turn.number, AgentFailed(twice))
        # An id may be used again once its call is over: then it is a new call.
        turn.requests[request.call_id] = request
        turn.shown.discard(request.call_id)
        turn.reasons.pop(request.call_id, None)
        if self.state is State.ENDING:
            turn.put(request.call_id, CallState.CLOSED)
            return [Decide(turn.number, request.call_id, Deny(STOPPED))]
        ruling = self.policy.judge(request)
        if ruling.decision is None:
            turn.put(request.call_id, CallState.PENDING)
            turn.shown.add(request.call_id)
            self._move(Step.ASK)
            return [Emit(turn.number, request)]
        fields = {name: getattr(request, name) for name in request.__fields__ if name in ToolJudged.__fields__}
        judged = Emit(turn.number, ToolJudged(**{**fields, "verdict": ruling.verdict, "why": ruling.reason}))
        return [judged, *self._decide(turn, request.call_id, ruling.decision)]

    def _put_into(self, mode: Mode) -> Action:
        self.policy.enter(mode)
        return Emit(self.turn, ModeChanged(mode, self.policy.workspace))

    def _decide(self, turn: TurnRecord, call_id: str, decision: Decision) -> list[Action]:
        if isinstance(decision, Approve):
            turn.put(call_id, CallState.ALLOWED)
        else:
            # Anything but a clear yes is a no.
            reason = (decision.reason if isinstance(decision, Deny) else "") or DENIED
            turn.put(call_id, CallState.DENYING)
            turn.reasons[call_id] = reason
            decision = Deny(reason)
        return [Decide(turn.number, call_id, decision)]

    def release(self) -> list[Action]:
        """Answer the pending requests that the policy no longer asks about."""
        actions: list[Action] = []
        for request in self.pending:
            if self._turn is not None and (decision := self.policy.judge(request).decision) is not None:
                actions.append(Emit(self._turn.number, ToolAnswered(request.call_id, isinstance(decision, Approve))))
                actions += self._decide(self._turn, request.call_id, decision)
        self._settle()
        return actions

    def _settle(self) -> None:
        if self.state is State.AWAITING_APPROVAL and not (self._turn and self._turn.pending):
            self._move(Step.SETTLE)

    def _acknowledge(self, turn: TurnRecord) -> list[Action]:
        """Show the denials that the agent knows of: it has gone on, so it has been told."""
        return [self._cancelled(turn, call_id, turn.reasons[call_id]) for call_id in tuple(turn.denying)]

    def _started(self, turn: TurnRecord, call_id: str, name: str) -> list[Action]:
        call = turn.calls.get(call_id)
        if call is CallState.RUNNING:
            return []
        if call is CallState.CLOSED and call_id in turn.reasons:
            return [Emit(turn.number, Notice(f"The agent says that it runs `{name}`, which was denied."))]
        turn.put(call_id, CallState.RUNNING)
        turn.shown.add(call_id)
        self._settle()
        return [Emit(turn.number, ToolStarted(call_id, name))]

    def _finished(self, turn: TurnRecord, event: ToolFinished) -> list[Action]:
        call = turn.calls.get(event.call_id)
        if call is CallState.CLOSED:
            return []
        # A result without a start would be the first that anybody hears of the call.
        started = [] if call is CallState.RUNNING else self._started(turn, event.call_id, event.name)
        turn.put(event.call_id, CallState.CLOSED)
        self._settle()
        return [*started, Emit(turn.number, event)]

    def _cancelled(self, turn: TurnRecord, call_id: str, reason: str) -> Action:
        turn.put(call_id, CallState.CLOSED)
        return Emit(turn.number, ToolCancelled(call_id, reason))

    def _end(self, outcome: Outcome, usage: Usage | None) -> list[Action]:
        turn = self._turn
        if turn is None:
            raise RuntimeError("no turn is in progress")
        why = self._why if self.state is State.ENDING else "The turn ended before this tool did"
        actions = [
            self._cancelled(turn, call_id, turn.reasons.get(call_id, why))
            for call_id, call in turn.calls.items()
            # One that the policy allowed and that never began was never shown: nobody misses its end.
            if call in OPEN_CALLS and (call_id in turn.shown or call is not CallState.ALLOWED)
        ]
        if outcome == "error" and not turn.failed:
            actions.append(Emit(turn.number, Failed("agent", "The agent could not answer and did not say why.")))
        actions.append(Emit(turn.number, TurnEnded(outcome, usage)))
        self._turn = None
        self._move(Step.END)
        return actions + self._next()
