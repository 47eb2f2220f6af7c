"""A session: one conversation with one agent, as every `serve` end sees it.

It puts together what has its own files: `core.turns` decides, `core.performer` carries that out on the agent, and
`core.recorder` logs and shows what happens. The methods that a wire calls while it reads (`submit`, `answer`, `stop`,
`set_mode`, `configure`) take effect at once and in order, and never wait.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from trunkline.base import log_context
from trunkline.base.redact import MASK
from trunkline.base.vocabulary import Mode
from trunkline.core import faults, tracing
from trunkline.core.agent import Agent, Capabilities, Change, Decision, Meter, OpenRequest
from trunkline.core.approvals import Policy
from trunkline.core.events import Envelope, Event, Gap, StopAsked, ToolCancelled, ToolRequested, TurnEnded, UserMessage
from trunkline.core.feed import QUEUE_LENGTH
from trunkline.core.grants import Grant
from trunkline.core.log import EventLog, LogLost, Restored
from trunkline.core.performer import Performer
from trunkline.core.recorder import Recorder, Sink
from trunkline.core.redaction import Redaction
from trunkline.core.rules import Rules
from trunkline.core.session_journal import SessionJournal
from trunkline.core.state import OpenTurn, SessionState
from trunkline.core.turn_record import dropped
from trunkline.core.turns import BusyPolicy, State, Turns


class Session:
    """One conversation. Made by `open`, ended by `close`."""

    def __init__(
        self,
        log: EventLog,
        policy: Policy,
        *,
        restored: Restored | None = None,
        busy: BusyPolicy = "queue",
        redact: Callable[[Event], Sequence[Event]] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.id = log.session
        self._recorder = Recorder(log, restored, clock, redact)
        self._turns = Turns(policy, busy, turns_so_far=self.state.turns)
        self._performer = Performer(self._turns, self._recorder)
        self._performer.entered = self._entered
        self._trace: tracing.SessionTrace | None = None
        self._closing: asyncio.Task[None] | None = None
        self._redact = redact
        self._agent: Agent | None = None
        self._meter: Meter | None = None
        self.stopped: Callable[[int, str], None] = lambda turn, by: None
        """Called with the turn in progress when somebody stops it, and who does."""
        self.deciding: Callable[[str, Decision], None] = lambda call_id, decision: None
        """Called when somebody's answer was taken, where they give it: the `log_context` there is theirs."""

    @classmethod
    async def open(
        cls,
        agent: Agent,
        log: EventLog,
        policy: Policy,
        *,
        resume: bool = False,
        mode: Mode | None = None,
        busy: BusyPolicy = "queue",
        workspace: str = ".",
        name: str = "",
        instructions: str | None = None,
        options: Mapping[str, Any] | None = None,
        said: Iterable[str] = (),
        redact: Callable[[Event], Sequence[Event]] | None = None,
        clock: Callable[[], float] = time.time,
        meter: Meter | None = None,
        goes_on: bool = False,
        called: str = "",
    ) -> Session:
        """Begin a session, or go on with the one that the log holds: what was granted in this workspace, and the
        mode that was chosen there unless one is given here. Of the `options`, those named in `said` count more than
        what was set in the session before. `called`: the agent's name for whoever follows it, if it has another here.

        With `goes_on`, also with the turn in which a person was being asked when the last process ended, if the agent
        can. Every other turn that was not ended then ends `unknown`, and nothing of it is done again.

        Raises:
            ConfigError: the agent cannot work as configured. LogLost: the session is another's.
        """
        session = cls(log, policy, restored=log.restore() if resume else None, busy=busy, redact=redact, clock=clock)
        session._meter = meter
        waiting = session._waiting() if goes_on and agent.capabilities.continues else None
        session._close_dangling_turns(but=waiting[0] if waiting else 0)
        if log.shows_kept:
            # Nobody is shown these ends as they come, and whoever reads must read what is kept.
            await log.sync()
        session._begin_in(workspace, mode)
        request = OpenRequest(
            session_id=log.session,
            journal=SessionJournal(session._recorder, session._turns),
            resumed=resume,
            history=tuple(session.state.history),
            workspace=workspace,
            name=name,
            instructions=instructions,
            options=options,
            said=tuple(said),
            waiting=waiting[1].waiting if waiting else (),
            meter=meter,
            mode=lambda: session.mode,
            rules=lambda: policy.rules,
            authority=session,
            announce=session._announce,
        )
        with log_context.about(session=session.id):
            session._performer.conversation = await agent.open(request)
        session._agent = agent
        if tracing.tracer is not None:
            session._trace = tracing.tracer.session(session.id, called or agent.name)
            session.attach(session._trace)
        if waiting:
            number, turn = waiting
            session._performer.apply(session._turns.go_on(number, turn.message, turn.waiting))
        return session

    @property
    def state(self) -> SessionState:
        """What the session has come to: usage, grants, history."""
        return self._recorder.state

    @property
    def status(self) -> State:
        """Where the session is in its turn."""
        return self._turns.state

    @property
    def capabilities(self) -> Capabilities:
        """What the agent can do in this conversation, as it is configured now."""
        own: Capabilities | None = getattr(self._performer.conversation, "capabilities", None)
        if own is not None:
            return own
        return Capabilities() if self._agent is None else self._agent.capabilities

    @property
    def commands(self) -> Mapping[str, str]:
        """What a message may begin with, so that the agent does something else than answer: `/word`, and what."""
        found: Mapping[str, str] = getattr(self._performer.conversation, "commands", {})
        return found

    @property
    def context(self) -> tuple[int, int] | None:
        """How many tokens of the model's window are used, and how many it has; None: nobody knows."""
        found: tuple[int, int] | None = getattr(self._performer.conversation, "context", None)
        return found

    @property
    def background(self) -> int:
        """How many commands of the agent run in the background, as far as that is known."""
        found: int = getattr(self._performer.conversation, "background", 0)
        return found

    @property
    def turn(self) -> int:
        """The number of the turn in progress; 0 between turns."""
        return self._turns.turn

    @property
    def latest(self) -> int:
        """The number of the latest message's turn, which may wait."""
        return self._turns.latest

    def turn_of(self, message_id: str) -> int:
        """The number of the turn of a message that waits; 0 if none of that id does."""
        return next((turn.number for turn in self._turns.queue if turn.message.id == message_id), 0)

    def waits(self, message_id: str) -> bool:
        """Whether a message is still to be answered: it waits, and nobody has withdrawn it."""
        return any(turn.message.id == message_id and not turn.dropped for turn in self._turns.queue)

    @property
    def seq(self) -> int:
        """The number of the latest event."""
        return self._recorder.seq

    @property
    def mode(self) -> Mode:
        """The approval mode."""
        return self._turns.policy.mode

    @property
    def grants(self) -> tuple[Grant, ...]:
        """What was granted, in the order in which it was."""
        return tuple(self._turns.policy.grants)

    @property
    def allowed(self) -> tuple[str, ...]:
        """The tools that need no approval whatever was granted."""
        return self._turns.policy.allow

    @property
    def rules(self) -> Rules:
        """The permission rules that are followed."""
        return self._turns.policy.rules

    @property
    def waiting(self) -> tuple[ToolRequested, ...]:
        """The calls about which a person is asked."""
        return self._turns.pending

    # Who is shown what happens.

    def attach(self, sink: Sink) -> None:
        """Show every later event to a sink, and let the agent wait for it. A `SessionWatcher` hears of the end, too."""
        self._recorder.attach(sink)

    def detach(self, sink: Sink) -> None:
        """Stop showing."""
        self._recorder.sinks.remove(sink)

    def subscribe(self, since: int | None = None, length: int = QUEUE_LENGTH) -> AsyncIterator[Envelope | Gap]:
        """Watch: the public events after sequence number `since` from the log, then those that come, without a hole.

        With `since` left out, only those that come after this call. Ends with the session.
        """
        return self._recorder.watch(self._recorder.subscribe(length), since)

    @property
    def shown(self) -> int:
        """The number of the latest event that watchers were shown: what comes to a new one has higher numbers."""
        return self._recorder.shown_seq

    def read(self, since: int, until: int, *, judged: bool = False) -> Iterator[Envelope | Gap]:
        """The public events from the log, after one sequence number and up to another; with `judged` also each
        `ToolJudged`.

        Raises:
            ValueError: the session was closed.
        """
        return self._recorder.read(since, until, judged=judged)

    def clean(self, text: str) -> str:
        """A text for the peer that is no event, without secrets."""
        return self._redact.text(text) if isinstance(self._redact, Redaction) else text

    def flush(self) -> None:
        """Show now what would be shown at the end of the tick."""
        self._recorder.flush()

    # What a wire calls.

    def submit(self, message: UserMessage, refusal: faults.Fault | None = None) -> int:
        """Answer a message, now or when its turn comes; gives the number of its turn. With a `refusal`: refuse it, in
        its place in the queue; so it is, too, when its budget is spent.

        Raises:
            AgentBusy: a turn is in progress and this session does not queue, far too many messages wait already, or
                the session is closed. The message was not taken.
        """
        self._turns.check_room()
        actions = self._turns.submit(message, refusal or self._over_budget())
        number = self._turns.latest
        if self._trace is not None:
            self._trace.expected(number)
        self._performer.apply(actions)
        return number

    def _over_budget(self) -> faults.Fault | None:
        try:
            if self._meter is not None:
                self._meter.admit()
        except faults.BudgetExceeded as fault:
            return fault
        return None

    def answer(self, call_id: str, decision: Decision, by: str = "") -> None:
        """Decide on a tool call that waits. `by`: who does, where several may.

        Raises:
            UnknownCall: none of that id does, or the session is being closed, and it would be lost.
        """
        if self._closing is not None:
            raise faults.UnknownCall("The session is being closed here.", hint="Answer when it is back.")
        self._performer.apply(self._turns.answer(call_id, decision, by))
        self.deciding(call_id, decision)

    def steer(self, message: UserMessage) -> bool:
        """Put a message into the turn in progress; whether the agent reads it there. Else nothing has happened."""
        steer: Callable[[UserMessage], bool] | None = getattr(self._performer.conversation, "steer", None)
        if steer is None or self.status not in (State.RUNNING, State.AWAITING_APPROVAL) or not steer(message):
            return False
        self._performer.apply(self._turns.steered(message))
        return True

    def needs_approver(self, text: str) -> bool:
        """Whether a message is a command that only those should give who may `answer`: it does what they would be asked
        about, and nobody will be. To be asked by whoever submits messages of people that may not."""
        ask: Callable[[str], bool] | None = getattr(self._performer.conversation, "needs_approver", None)
        return ask is not None and ask(text)

    def set_mode(self, mode: Mode) -> None:
        """Change the approval mode; requests that it allows are released."""
        self._performer.apply(self._turns.set_mode(mode))

    def follow(self, rules: Rules) -> None:
        """Judge by other rules from now on; requests that they allow are released."""
        self._turns.policy.rules = rules
        self._performer.apply(self._turns.release())

    def revoke(self, grant: Grant) -> None:
        """Take back what was granted: later calls need approval again. One that is not there is ignored."""
        self._performer.apply(self._turns.revoke(grant))

    def stop(self, by: str = "", turn: int | None = None) -> None:
        """Stop the turn in progress and drop the queue. The turn ends within a second; the session lives on.

        With `turn`, that one alone: if it waits, it ends `cancelled` when its place comes; if it is over, nothing.
        `by`: who does, where several may; the log keeps it.
        """
        ends = self.status in (State.RUNNING, State.AWAITING_APPROVAL) and turn in (None, self.turn)
        withdrawn = dropped(self._turns.queue, turn)
        if by and (ends or withdrawn):
            ids = tuple(message.id for message in withdrawn if message.id is not None)
            self._recorder.emit(self.turn if ends else 0, StopAsked(by, ids))
        if by and ends:
            self.stopped(self.turn, by)
        self._performer.apply(self._turns.stop(only=turn))

    def break_off(self, fault: faults.Fault) -> None:
        """End the turn in progress as failed, whatever the agent does. The session lives on."""
        self._performer.apply(self._turns.fail(self._turns.turn, fault))

    def configure(self, change: Change) -> asyncio.Future[None]:
        """Change the conversation, ahead of every message that is submitted after this call.

        The future raises a `Fault` if it did not work: `Unsupported` if the agent cannot do that.
        """
        return self._performer.configure(change)

    async def settled(self) -> None:
        """Wait until everything that has happened is in the log and was shown.

        Raises:
            LogLost: it is not, and never will be: the session is another's.
        """
        await self._recorder.shown()
        if self._recorder.is_lost:
            raise LogLost("The session has moved to another node, without what was last said here.", hint="Try again.")

    async def at_rest(self) -> None:
        """Wait until no turn is in progress, none is queued, and the end of the last one has been shown."""
        await self._performer.idle.wait()
        await self._recorder.shown()

    async def close(self, *, keep_unused: bool = True) -> None:
        """End the turn in progress, close the agent and the log. Bounded in time, and idempotent.

        A new session in which nothing was said need not be kept: then its id can be had again.
        """
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(keep_unused), name="close the session")
        await asyncio.shield(self._closing)

    async def suspend(self) -> None:
        """Let go of the agent and the log, so that whoever opens the session next finds it as after a crash.

        A turn in which a person is asked stays open, if the agent can go on with it; every other one is ended as by
        `close`. Messages that wait are neither answered nor refused: whoever has taken them in must have kept them.
        """
        self._turns.forget_queue()
        goes_on = self._agent is not None and self._agent.capabilities.continues and self._waiting() is not None
        if self._closing is None and goes_on and self.status is State.AWAITING_APPROVAL:
            self._closing = asyncio.create_task(self._suspend(), name="suspend the session")
        await self.close()

    def when_lost(self, lost: Callable[[], None]) -> None:
        """Call this when the log says that the session is another's: then `abandon` is to be called."""
        self._recorder.lost = lost

    @property
    def is_lost(self) -> bool:
        """Whether the log has said so."""
        return self._recorder.is_lost

    async def abandon(self) -> None:
        """Let go of the agent and the log at once: the session is another's, and nothing more is said of it here."""
        self._turns.forget_queue()
        self._closing = self._closing or asyncio.create_task(self._suspend(), name="abandon the session")
        await asyncio.shield(self._closing)

    async def _suspend(self) -> None:
        self.ending()
        self._recorder.freeze()
        await self._performer.leave()
        await self._recorder.close()

    @property
    def is_closing(self) -> bool:
        """Whether nothing more is taken."""
        return self._closing is not None

    def ending(self) -> None:
        """Let a process that waits for this session know that `close` will be called soon."""
        self._recorder.ending()

    async def _close(self, keep_unused: bool) -> None:
        self.ending()
        self._performer.apply(self._turns.close())
        await self._performer.close()
        await self._recorder.close(keep_unused=keep_unused)

    def _entered(self, turn: int) -> None:
        """Called in the task of a turn, before the agent hears of it."""
        log_context.add(session=self.id, turn=turn)
        if self._trace is not None:
            self._trace.entered(turn)

    def _announce(self, event: Event) -> None:
        if self._closing is None:
            self._recorder.emit(self._turns.turn, event)

    def _begin_in(self, workspace: str, mode: Mode | None) -> None:
        """What was granted and chosen in this directory counts; what was elsewhere, does not."""
        policy = self._turns.policy
        policy.workspace = os.path.realpath(workspace)
        policy.grants.update(dict.fromkeys(self.state.grants_in(policy.workspace)))
        for each in (*self.state.modes_in(policy.workspace), *((mode,) if mode else ())):
            policy.enter(each)

    def _waiting(self) -> tuple[int, OpenTurn] | None:
        """The turn in which a person was being asked, and nothing else was under way. A call with a secret in its
        arguments is not in the log as it would have to be run."""
        number, turn = max(self.state.open_turns.items(), default=(0, None))
        if turn is None or not turn.waiting or any(MASK in repr(request.args) for request in turn.waiting):
            return None
        return number, turn

    def _close_dangling_turns(self, but: int) -> None:
        """Turns that the process did not live to end: what became of them, nobody knows."""
        for number, turn in tuple(self.state.open_turns.items()):
            if number == but:
                continue
            for call_id in tuple(turn.calls):
                self._recorder.emit(number, ToolCancelled(call_id, "The process ended before this tool did"))
            self._recorder.emit(number, TurnEnded("unknown"))
        self._recorder.forget_unshown()
