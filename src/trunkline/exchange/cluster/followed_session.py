"""A session that another node owns, as clients here see it: its events come from the stream, commands go to its owner.

It is a `Session` in everything that reads: what happened is folded into the same state and shown to the same sinks.
What changes it is asked of the owner, and comes back as events.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from trunkline.base import shapes
from trunkline.base.attach_chat import AttachedCommand
from trunkline.base.vocabulary import Mode
from trunkline.core import fault_kinds, faults
from trunkline.core.agent import AddHistory, Approve, Capabilities, Change, Decision, Deny, SetOptions
from trunkline.core.events import Envelope, ToolRequested, UserMessage
from trunkline.core.faults import StoreUnavailable, UnknownCall, Unsupported
from trunkline.core.grants import Grant
from trunkline.core.log import EventLog, Restored
from trunkline.core.recorder import Recorder
from trunkline.core.rules import NO_RULES, Rules
from trunkline.core.session import Session
from trunkline.core.turns import State

logger = logging.getLogger(__name__)

#: Has the owner carry out a command, for somebody: gives the number of a turn, where there is one.
Command = Callable[[AttachedCommand, str], Awaitable[int | None]]

MOVED = "The session is moving to another node."


class FollowedSession(Session):
    """One session. `command` asks its owner."""

    def __init__(self, log: EventLog, restored: Restored, command: Command, capabilities: Capabilities) -> None:
        # Not by `Session`, which would answer: there is nobody here who could.
        self.id = log.session
        self._recorder = Recorder(log, restored, time.time, None)
        self._redact = None
        self._command = command
        self._capabilities = capabilities
        self._closed = False
        self._asked: set[asyncio.Task[Any]] = set()

    def take(self, events: Sequence[Envelope]) -> None:
        """More that has happened."""
        self._recorder.follow(events)

    # What it is.

    @property
    def status(self) -> State:
        if self._closed:
            return State.CLOSED
        return State.AWAITING_APPROVAL if self.waiting else State.RUNNING if self.turn else State.IDLE

    @property
    def is_closing(self) -> bool:
        return self._closed

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    @property
    def commands(self) -> Mapping[str, str]:
        return {}

    def needs_approver(self, text: str) -> bool:
        """Only the owner knows what a command does: here, each is for those who may do anything that one may do."""
        return text.lstrip().startswith("/")

    @property
    def context(self) -> tuple[int, int] | None:
        return None

    @property
    def background(self) -> int:
        return 0

    @property
    def turn(self) -> int:
        return max(self.state.open_turns, default=0)

    @property
    def latest(self) -> int:
        return self.state.turns

    def turn_of(self, message_id: str) -> int:
        return 0

    def waits(self, message_id: str) -> bool:
        return False

    @property
    def mode(self) -> Mode:
        return self.state.mode or "default"

    @property
    def grants(self) -> tuple[Grant, ...]:
        return tuple(self.state.grants)

    @property
    def allowed(self) -> tuple[str, ...]:
        return ()

    @property
    def rules(self) -> Rules:
        return NO_RULES

    @property
    def waiting(self) -> tuple[ToolRequested, ...]:
        turn = self.state.open_turns.get(self.turn)
        return tuple(call for call in turn.calls.values() if call is not None) if turn is not None else ()

    # What changes it.

    def submit(self, message: UserMessage, refusal: faults.Fault | None = None) -> int:
        """Not here: the number of a turn is the owner's to give, and takes a while."""
        raise refusal or StoreUnavailable(MOVED, retryable=True)

    def answer(self, call_id: str, decision: Decision, by: str = "") -> None:
        if all(request.call_id != call_id for request in self.waiting):
            raise UnknownCall(f"No call `{call_id[:80]}` is waiting.")
        self._ask(answering(call_id, decision), by)

    def steer(self, message: UserMessage) -> bool:
        return False

    def set_mode(self, mode: Mode) -> None:
        self._ask(AttachedCommand("mode", mode=mode), "")

    def follow(self, rules: Rules) -> None:
        raise Unsupported("The rules of a session are its owner's.")

    def revoke(self, grant: Grant) -> None:
        self._ask(AttachedCommand("revoke", grant=shapes.encode(grant)), "")

    def stop(self, by: str = "", turn: int | None = None) -> None:
        self._ask(AttachedCommand("stop", turn=turn), by)

    def break_off(self, fault: faults.Fault) -> None:
        self.stop()

    def configure(self, change: Change) -> asyncio.Future[None]:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if isinstance(change, AddHistory):
            command = AttachedCommand("configure", history=change.text)
        elif isinstance(change, SetOptions):
            command = AttachedCommand("configure", options=change.options)
        else:
            told = f"`{type(change).__name__}` is not possible for a session on another node."
            done.set_exception(Unsupported(told))
            return done
        self._ask(command, "").add_done_callback(lambda task: _settle(done, task))
        return done

    async def at_rest(self) -> None:
        watching = self.subscribe()
        while self.status not in (State.IDLE, State.CLOSED) and await anext(watching, None) is not None:
            pass

    async def close(self, *, keep_unused: bool = True) -> None:
        """Follow it no more: it goes on."""
        if not self._closed:
            self._closed = True
            for task in self._asked:
                task.cancel()
            await self._recorder.close()

    async def suspend(self) -> None:
        await self.close()

    def ending(self) -> None:
        """Nobody waits for it here."""

    def _ask(self, command: AttachedCommand, by: str) -> asyncio.Task[int | None]:
        task = asyncio.ensure_future(self._command(command, by))
        self._asked.add(task)
        task.add_done_callback(self._heard)
        return task

    def _heard(self, task: asyncio.Task[int | None]) -> None:
        self._asked.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # There is no event of it: what the owner has not heard, has not happened.
            logger.warning("a command for session %s was not carried out: %s", self.id, error)


def answering(call_id: str, decision: Decision) -> AttachedCommand:
    """A person's decision as a command."""
    match decision:
        case Approve(scope=scope, narrow=narrow):
            return AttachedCommand("answer", call_id=call_id, approve=True, scope=scope, narrow=narrow)
        case Deny(reason=reason):
            return AttachedCommand("answer", call_id=call_id, approve=False, reason=reason)
    raise TypeError(f"not a decision: {decision}")


def _settle(done: asyncio.Future[None], task: asyncio.Task[int | None]) -> None:
    if done.done():
        return
    if task.cancelled():
        done.cancel()
    elif (error := task.exception()) is not None:
        done.set_exception(fault_kinds.of(error))
    else:
        done.set_result(None)
