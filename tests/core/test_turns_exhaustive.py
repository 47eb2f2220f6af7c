"""Every interleaving of commands, agent events and faults.

States with the same future are visited once, so that all sequences of any length take seconds instead of for ever. The
monitor watches what comes out, as a host would, and knows nothing of the machine's inside.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest

from trunkline.base.vocabulary import Mode
from trunkline.core.actions import Abandon, Action, Begin, Cancel, Decide, Emit
from trunkline.core.agent import Approve, Deny
from trunkline.core.approvals import Policy
from trunkline.core.events import (
    Category,
    Event,
    Failed,
    ModeChanged,
    Notice,
    TextDelta,
    ToolCancelled,
    ToolFinished,
    ToolRequested,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UserMessage,
)
from trunkline.core.faults import AgentBusy, AgentFailed, Fault, RemoteProtocolError, UnknownCall
from trunkline.core.turn_record import CallState, TurnRecord
from trunkline.core.turns import STOPPED, State, Turns
from trunkline.core.usage import Usage

# Nothing here is executed that the other tests of the machine do not execute, and tracing would double the time.
pytestmark = pytest.mark.no_cover

T = TypeVar("T")

CATEGORIES: dict[str, Category] = {"a": "exec", "b": "edit"}


class Violation(AssertionError):
    """The machine did what it must never do."""


class World:
    """A machine, the agent and host around it, and a monitor of everything that comes out."""

    def __init__(self, make: Callable[[Policy], Turns], messages: int) -> None:
        self.turns = make(Policy())
        self.messages = messages
        self.sent = 0
        self.started: list[int] = []
        self.ended: list[int] = []
        self.calls: dict[tuple[int, str], str] = {}
        self.owed: list[tuple[int, str]] = []
        """Decisions that the machine wants told to the agent."""
        self.asked: set[tuple[int, str]] = set()
        """Requests that the agent made and nobody answered."""
        self.agent_turn = 0
        self.cancelling = 0
        self.trail: tuple[str, ...] = ()
        self.approved = ""
        """The call that the person has approved in this very move."""

    # What may happen next.

    def moves(self) -> Iterator[str]:
        if self.sent < self.messages:
            yield from ("message", "empty message")
        yield from ("stop", "stop this", "close", "mode yolo", "mode default")
        for call in ("a", "b"):
            yield from (f"approve {call}", f"always {call}", f"deny {call}")
        if self.turns.queue:
            yield "stop that"
        if self.owed:
            yield from ("told", "untold")
        if self.agent_turn:
            yield from ("text", "failed event", "end", "end error", "crash", "vanish")
            for call in ("a", "b"):
                yield from (f"request {call}", f"other {call}", f"start {call}", f"finish {call}", f"cancel {call}")
        if self.cancelling:
            yield "expire"

    def do(self, move: str) -> None:  # noqa: C901
        self.trail += (move,)
        self.approved = ""
        turns, turn = self.turns, self.agent_turn
        verb, _, call = move.partition(" ")
        match verb:
            case "message" | "empty":
                refusal = RemoteProtocolError("empty") if verb == "empty" else None
                try:
                    self.take(turns.submit(UserMessage("m"), refusal))
                    self.sent += 1
                except AgentBusy:
                    if turns.state is not State.CLOSED:
                        raise Violation("a message was refused without an end") from None
            case "stop":
                before = turns.state
                only = {"this": turns.turn, "that": turns.queue[-1].number if turns.queue else 0}.get(call)
                self.take(turns.stop(only=only))
                if call == "that" and turns.state is not before:
                    raise Violation("the wrong turn is stopped")
            case "close":
                self.take(turns.close())
            case "mode":
                self.take(turns.set_mode("yolo" if call == "yolo" else "default"))
                if call == "yolo" and turns.pending:
                    raise Violation("a request is still pending in a mode that allows it")
            case "approve" | "always" | "deny":
                decision = Deny("no") if verb == "deny" else Approve("always" if verb == "always" else "once")
                pending = any(request.call_id == call for request in turns.pending)
                self.approved = "" if verb == "deny" else call
                try:
                    self.take(turns.answer(call, decision))
                except UnknownCall:
                    if pending:
                        raise Violation("a pending request could not be answered") from None
                else:
                    if not pending:
                        raise Violation("an answer was taken that nobody waited for")
            case "told":
                self.take(turns.resolved(*self.owed.pop(0)))
            case "text":
                self.take(turns.agent_says(turn, TextDelta("x")))
            case "failed":
                self.take(turns.agent_says(turn, Failed("provider", "no")))
            case "request":
                self.asked.add((turn, call))
                self.take(turns.agent_says(turn, ToolRequested(call, "T", CATEGORIES[call], {})))
            case "other":
                # Another call under the same id: whoever approved the first has not approved this one.
                self.asked.add((turn, call))
                self.take(turns.agent_says(turn, ToolRequested(call, "T", CATEGORIES[call], {"other": True})))
            case "untold":
                self.owed.clear()
                self.take(turns.fail(turn, AgentFailed("deaf")))
            case "start":
                self.take(turns.agent_says(turn, ToolStarted(call, "T")))
            case "finish":
                self.take(turns.agent_says(turn, ToolFinished(call, "T", "success", "")))
            case "cancel":
                self.take(turns.agent_says(turn, ToolCancelled(call, "agent")))
            case "end":
                self.take(turns.agent_says(turn, TurnEnded("error" if call else "success")))
            case "crash":
                self.take(turns.agent_failed(turn, AgentFailed("boom")))
            case "vanish":
                self.take(turns.agent_gone(turn))
            case "expire":
                self.take(turns.expired(self.cancelling))
        if verb in ("end", "crash", "vanish", "expire", "untold") and turn and turns.turn == turn:
            raise Violation("the turn goes on without its agent")

    # What must never happen.

    def take(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Begin(turn=turn):
                    if self.agent_turn or turn not in self.started or turn in self.ended:
                        raise Violation(f"turn {turn} begins at the wrong time")
                    self.agent_turn = turn
                case Decide(turn=turn, call_id=call_id, decision=decision):
                    if isinstance(decision, Approve) and not self.warranted(call_id):
                        raise Violation(f"nobody approved {call_id}")
                    self.owed.append((turn, call_id))
                    self.asked.discard((turn, call_id))
                    if self.calls.get((turn, call_id)) == "over":
                        del self.calls[turn, call_id]  # the id is used again: a new call
                case Abandon(turn=turn):
                    if turn != self.agent_turn:
                        raise Violation("the wrong turn is abandoned")
                case Cancel(turn=turn):
                    if turn != self.agent_turn:
                        raise Violation("the wrong turn is cancelled")
                    self.cancelling = turn
                case Emit(turn=turn, event=event):
                    self.see(turn, event)
        self.check()

    def warranted(self, call_id: str) -> bool:
        """Whether the policy allows the call, or the person has just approved it."""
        return self.approved == call_id or self.turns.policy.verdict("T", CATEGORIES[call_id]) == "allow"

    def see(self, turn: int, event: object) -> None:
        if isinstance(event, TurnStarted):
            if turn in self.started:
                raise Violation(f"turn {turn} starts twice")
            self.started.append(turn)
            return
        if turn and (turn not in self.started or turn in self.ended):
            raise Violation(f"{event} outside its turn {turn}")
        if isinstance(event, TurnEnded):
            self.see_end(turn)
        else:
            self.see_call(turn, event)

    def see_end(self, turn: int) -> None:
        open_calls = [key for key, where in self.calls.items() if key[0] == turn and where != "over"]
        if open_calls:
            raise Violation(f"turn {turn} ends with open calls {open_calls}")
        self.ended.append(turn)
        if turn == self.agent_turn:
            self.agent_turn = 0
            self.cancelling = 0
            self.asked.clear()

    def see_call(self, turn: int, event: object) -> None:
        match event:
            case ToolRequested(call_id=call_id):
                if self.calls.get((turn, call_id)) in ("asked", "running"):
                    raise Violation(f"call {call_id} is requested twice")
                self.calls[turn, call_id] = "asked"
            case ToolStarted(call_id=call_id):
                if self.calls.get((turn, call_id)) == "running":
                    raise Violation(f"call {call_id} starts twice")
                self.calls[turn, call_id] = "running"
            case ToolFinished(call_id=call_id):
                if self.calls.get((turn, call_id)) != "running":
                    raise Violation(f"call {call_id} has a result and did not run")
                self.calls[turn, call_id] = "over"
            case ToolCancelled(call_id=call_id):
                if self.calls.get((turn, call_id)) == "over":
                    raise Violation(f"call {call_id} ends twice")
                self.calls[turn, call_id] = "over"

    def check(self) -> None:
        turns = self.turns
        pending = {(turns.turn, request.call_id) for request in turns.pending}
        if turns.state is State.AWAITING_APPROVAL and not pending:
            raise Violation("waits for nobody")
        if pending and turns.state is not State.AWAITING_APPROVAL:
            raise Violation(f"pending requests in {turns.state}")
        if bool(self.agent_turn) != (turns.state in (State.RUNNING, State.AWAITING_APPROVAL, State.ENDING)):
            raise Violation(f"the agent's turn is {self.agent_turn} in {turns.state}")
        for key in self.asked - pending:
            # Shown and answered, started or ended by the agent itself, or waiting: nothing else is left.
            if self.calls.get(key) not in ("running", "over"):
                raise Violation(f"request {key} is lost")
        if turns.state in (State.IDLE, State.CLOSED) and self.started != sorted(self.ended, key=self.started.index):
            raise Violation("idle with an unfinished turn")

    def finish(self) -> None:
        """From any state a stop and the grace period lead to rest, with an end for every message that was sent."""
        self.take(self.turns.close())
        if self.cancelling:
            self.take(self.turns.expired(self.cancelling))
        if len(self.ended) != self.sent or self.turns.state is not State.CLOSED:
            raise Violation(f"{self.sent} messages, {len(self.ended)} ends")

    def clone(self) -> World:
        """A copy that shares nothing that changes; many times faster than `copy.deepcopy`."""
        other = _shallow(self)
        other.started, other.ended, other.owed = self.started[:], self.ended[:], self.owed[:]
        other.calls, other.asked = self.calls.copy(), self.asked.copy()
        machine = other.turns = _shallow(self.turns)
        machine.policy = _shallow(self.turns.policy)
        machine.policy.grants = dict(self.turns.policy.grants)
        machine._turn = _copied(self.turns._turn) if self.turns._turn else None
        machine.queue = deque(_copied(turn) for turn in self.turns.queue)
        return other

    def key(self) -> object:
        """What the future depends on, and nothing else: not the numbers, not what is over and forgotten."""
        machine = self.turns
        turn = machine._turn
        inside = turn and (frozenset(turn.calls.items()), frozenset(turn.shown), frozenset(turn.reasons), turn.failed)
        owed = tuple(call for number, call in self.owed if turn and turn.calls.get(call) is CallState.DENYING)
        calls = frozenset((call, where) for (number, call), where in self.calls.items() if number == self.agent_turn)
        asked = frozenset(call for _, call in self.asked)
        queue = tuple((waiting.dropped, waiting.refusal is None) for waiting in machine.queue)
        policy = (machine.policy.mode, frozenset(machine.policy.grants))
        outside = (self.sent, bool(self.agent_turn), bool(self.cancelling), owed, asked, calls)
        return (machine.state, machine.closing, policy, inside, queue, outside)


def _shallow(thing: T) -> T:
    """What `copy.copy` does with an ordinary object, without asking what kind of thing it is: most of a run is this."""
    other = object.__new__(type(thing))
    other.__dict__.update(thing.__dict__)
    return other


def _copied(turn: TurnRecord) -> TurnRecord:
    other = _shallow(turn)
    other.calls, other.requests, other.reasons = dict(turn.calls), dict(turn.requests), dict(turn.reasons)
    other.pending, other.denying = dict(turn.pending), dict(turn.denying)
    other.shown = set(turn.shown)
    return other


def explore(make: Callable[[Policy], Turns], messages: int, depth: int | None = None) -> int:
    """Visit every distinguishable state within `depth` moves (or all there are), and from each one go to the end."""
    frontier = [World(make, messages)]
    seen = {frontier[0].key()}
    while frontier and (depth is None or depth > 0):
        depth = None if depth is None else depth - 1
        reached: list[World] = []
        for world in frontier:
            for move in tuple(world.moves()):
                after = world.clone()
                try:
                    after.do(move)
                    if (key := after.key()) not in seen:
                        seen.add(key)
                        reached.append(after)
                        after.clone().finish()
                except Violation as violation:
                    violation.add_note(" -> ".join(after.trail))
                    raise
        frontier = reached
    return len(seen)


@pytest.mark.long
def test_no_interleaving_of_one_message_breaks_a_promise_however_long() -> None:
    assert explore(Turns, messages=1) > 1_000


@pytest.mark.long
@pytest.mark.timeout(180)
def test_no_interleaving_of_two_messages_breaks_a_promise_however_long() -> None:
    assert explore(Turns, messages=2) > 10_000


@pytest.mark.long
@pytest.mark.timeout(180)
def test_no_interleaving_of_three_messages_breaks_a_promise_within_eight_moves() -> None:
    assert explore(Turns, messages=3, depth=8) > 10_000


# A check that cannot fail shows nothing: each of these machines is wrong in one way, and must be caught.


class ForgetsPendingOnStop(Turns):
    def stop(self, why: str = STOPPED, only: int | None = None) -> list[Action]:
        return [action for action in super().stop(why, only) if isinstance(action, Cancel)]


class EndsTwice(Turns):
    def expired(self, turn_number: int, usage: Usage | None = None) -> list[Action]:
        actions = super().expired(turn_number, usage)
        return actions + [action for action in actions if isinstance(action, Emit)]


class NeverEndsAfterCrash(Turns):
    def agent_failed(self, turn_number: int, fault: Fault) -> list[Action]:
        return [Emit(turn_number, Failed(fault.kind, str(fault)))] if turn_number == self.turn else []


class LosesTheQueueOnStop(Turns):
    def stop(self, why: str = STOPPED, only: int | None = None) -> list[Action]:
        self.queue.clear()
        return super().stop(why, only)


class StopsEverybodyElsesToo(Turns):
    def stop(self, why: str = STOPPED, only: int | None = None) -> list[Action]:
        return super().stop(why)


class ModeDoesNotRelease(Turns):
    def set_mode(self, mode: Mode) -> list[Action]:
        self.policy.mode = mode
        return [Emit(self.turn, ModeChanged(mode))]


class IgnoresRequestsWhileEnding(Turns):
    def agent_says(self, turn_number: int, event: Event) -> list[Action]:
        if self.state is State.ENDING and isinstance(event, ToolRequested):
            return []
        return super().agent_says(turn_number, event)


class TakesLateWords(Turns):
    def agent_says(self, turn_number: int, event: Event) -> list[Action]:
        actions = super().agent_says(turn_number, event)
        return [*actions, Emit(turn_number, Notice("late"))] if isinstance(event, TurnEnded) else actions


class AcknowledgesDenialsTwice(Turns):
    def resolved(self, turn_number: int, call_id: str) -> list[Action]:
        return [Emit(turn_number, ToolCancelled(call_id, "denied"))] if turn_number == self.turn else []


@pytest.mark.parametrize(
    "broken",
    [
        ForgetsPendingOnStop,
        EndsTwice,
        NeverEndsAfterCrash,
        LosesTheQueueOnStop,
        StopsEverybodyElsesToo,
        ModeDoesNotRelease,
        IgnoresRequestsWhileEnding,
        TakesLateWords,
        AcknowledgesDenialsTwice,
    ],
)
def test_a_machine_that_is_wrong_in_one_way_is_caught(broken: type[Turns]) -> None:
    with pytest.raises(Violation):
        explore(broken, messages=2, depth=6)
