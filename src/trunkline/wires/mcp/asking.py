"""One message to an agent, from its seat to the end of its turn.

It lives in a task of its own: the request that waits for it may be cancelled, or be made again with answers to
questions, and nothing that the client does or leaves undone holds up the agent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from trunkline.core import fault_kinds, faults
from trunkline.core.agent import Decision
from trunkline.core.events import (
    Envelope,
    Event,
    Failed,
    Notice,
    Outcome,
    Plan,
    Progress,
    TextDelta,
    ThinkingDelta,
    ToolCancelled,
    ToolFinished,
    ToolRequested,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UserMessage,
)
from trunkline.core.fault_kinds import of_kind
from trunkline.core.fault_table import told
from trunkline.core.feed import SessionWatcher
from trunkline.core.keeper import Removed, Seat
from trunkline.core.usage import Usage

logger = logging.getLogger(__name__)

#: The longest answer that is kept. A tool's result goes into a model's prompt, which is far shorter.
ANSWER_CHARS = 1_000_000
#: How much of the answer so far is shown while it grows: a line or two of a status display.
SHOWN_CHARS = 200
#: How long the end of a turn that was stopped is waited for. Agents stop within that, and sessions see to it.
STOP_SECONDS = 1.0

OpenSeat = Callable[[Removed], Awaitable[Seat]]
LeaveSeat = Callable[[Seat], Awaitable[None]]


class AskRun:
    """A message that is being answered."""

    def __init__(self, agent: str, open_seat: OpenSeat, leave: LeaveSeat, text: str) -> None:
        self.agent = agent
        self.session = ""
        """The session's id, as soon as it is known."""
        self.news = asyncio.Event()
        """Set when there is something to look at; whoever looks clears it."""
        self.status = f"`{agent}` is being asked"
        """What happened last, in a line."""
        self.told = 0
        """How often the client was told."""
        self.outcome: Outcome | None = None
        self.usage: Usage | None = None
        self.fault: faults.Fault | None = None
        """Why there is no answer, or no good one."""
        self._seat: Seat | None = None
        self._turn = 0
        self._answer: list[str] = []
        self._chars = 0
        self._new_part = False
        self._ended = asyncio.Event()
        self._settled = asyncio.Event()
        """Set when it has ended, or was told to."""
        self._stopped = False
        self._early: list[Envelope] | None = []
        """What was shown before the number of the turn was known."""
        self.task = asyncio.create_task(self._live(open_seat, leave, text), name=f"ask `{agent}`")
        """Ends when there is nothing more to wait for."""

    @property
    def over(self) -> bool:
        """Whether there is nothing more to wait for."""
        return self.task.done()

    @property
    def text(self) -> str:
        """The answer, or what there is of it."""
        return "".join(self._answer)

    @property
    def may_answer(self) -> bool:
        """Whether the client may decide on tool calls."""
        return self._seat is not None and self._seat.may_answer

    @property
    def questions(self) -> Sequence[ToolRequested]:
        """The calls of this turn that wait for a decision."""
        if self._seat is None or self.over or self._seat.session.turn != self._turn:
            return ()
        return self._seat.session.waiting

    def clean(self, text: str) -> str:
        """A text without the secrets that the session knows."""
        return self._seat.session.clean(text) if self._seat else text

    def answer(self, call_id: str, decision: Decision) -> None:
        """Decide on a call. One that waits no longer is none of ours any more; what is forbidden, others decide."""
        if self._seat is not None:
            with suppress(faults.UnknownCall, faults.Forbidden):
                self._seat.answer(call_id, decision)

    def stop(self) -> None:
        """End this turn, and no other."""
        self._stopped = True
        if self._turn and self._seat is not None and not self._ended.is_set():
            with suppress(faults.Fault):
                self._seat.stop(self._turn)
        self._settled.set()

    async def abandon(self) -> None:
        """Stop it, and wait until it is over; an agent that cannot be had all that time is waited for no longer."""
        self.stop()
        _, late = await asyncio.wait({self.task}, timeout=2 * STOP_SECONDS)
        if late:
            self.task.cancel()
            await asyncio.wait(late)

    def show(self, envelopes: Sequence[Envelope]) -> None:
        """Some events of the session."""
        if self._early is not None:
            self._early += envelopes
            return
        for envelope in envelopes:
            if envelope.turn == self._turn:
                self.take(envelope.event)
        self.news.set()

    def lost(self, why: str) -> None:
        """The session is gone."""
        if not self._ended.is_set():
            self.fault = faults.SessionNotFound(why)
            self._ended.set()
            self._settled.set()
        self.news.set()

    async def _live(self, open_seat: OpenSeat, leave: LeaveSeat, text: str) -> None:
        try:
            await self._ask(open_seat, leave, text)
        except faults.Fault as fault:
            self.fault = fault
        except Exception as error:
            logger.exception("`%s` could not be asked", self.agent)
            self.fault = fault_kinds.of(error)
        finally:
            self.news.set()

    async def _ask(self, open_seat: OpenSeat, leave: LeaveSeat, text: str) -> None:
        seat = self._seat = await open_seat(lambda: self.lost("The session was removed while the agent answered."))
        self.session = seat.session.id
        watcher = _TurnWatcher(self)
        seat.session.attach(watcher)
        try:
            if self._settled.is_set():
                return
            self._turn = await seat.submit(UserMessage(text))
            early, self._early = self._early or [], None
            self.show(early)
            if self._stopped:
                self.stop()
            await self._end_of_turn()
        finally:
            with suppress(ValueError):
                seat.session.detach(watcher)
            await leave(seat)

    async def _end_of_turn(self) -> None:
        await self._settled.wait()
        if not self._ended.is_set():
            # It was stopped, and agents need a moment for that.
            with suppress(TimeoutError):
                async with asyncio.timeout(STOP_SECONDS):
                    await self._ended.wait()

    def take(self, event: Event) -> None:
        """One more event of the turn."""
        match event:
            case TurnStarted():
                self.status = f"`{self.agent}` is at work"
            case TextDelta(text=text):
                self._say(text)
            case ThinkingDelta():
                self.status = f"`{self.agent}` is thinking"
            case ToolStarted(name=name):
                self._new_part = True
                self.status = f"`{name}` is running"
            case ToolFinished(name=name, status=status):
                self._new_part = True
                self.status = f"`{name}` has ended: {status}"
            case ToolCancelled(reason=reason):
                self._new_part = True
                self.status = f"A tool was not run: {reason}"[:SHOWN_CHARS]
            case Progress(message=message) | Notice(message=message):
                self.status = message[:SHOWN_CHARS]
            case Plan(entries=entries):
                doing = next((entry.content for entry in entries if entry.status == "in_progress"), "")
                self.status = (f"Next: {doing}" if doing else f"`{self.agent}` has a plan")[:SHOWN_CHARS]
            case Failed(kind=kind, message=message, retryable=retryable):
                self.fault = of_kind(kind, told(kind, message), retryable=retryable)
            case TurnEnded(outcome=outcome, usage=usage):
                self.outcome, self.usage = outcome, usage
                self._ended.set()
                self._settled.set()
            case _:
                pass

    def _say(self, text: str) -> None:
        if self._chars >= ANSWER_CHARS:
            return
        if self._new_part and self._answer:
            text = f"\n\n{text}"
        self._new_part = False
        self._answer.append(text[: ANSWER_CHARS - self._chars])
        self._chars += len(text)
        if self._chars >= ANSWER_CHARS:
            self._answer.append(f" ... (more than {ANSWER_CHARS} characters; the session has all of it)")
        self.status = "".join(self._answer[-SHOWN_CHARS:])[-SHOWN_CHARS:]


class _TurnWatcher(SessionWatcher):
    """Shows a session's events to a run."""

    def __init__(self, run: AskRun) -> None:
        self._run = run

    def show(self, envelopes: Sequence[Envelope]) -> None:
        self._run.show(envelopes)

    def close(self) -> None:
        self._run.lost("The session ended while the agent answered.")
