"""A session: one conversation with one agent, as every `serve` end sees it.

It carries out what `core.turns` decides: runs the agent's turns, passes decisions on, and gives every event to the
`Recorder`, which logs and shows it.

The methods that a wire calls while it reads (`submit`, `answer`, `stop`, `set_mode`) return at once. All work happens
in tasks that belong to the session and end with it; every wait in them is bounded.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from trunkline.core import faults
from trunkline.core.agent import AddHistory, Agent, Change, Conversation, Decision, OpenRequest
from trunkline.core.approvals import Policy
from trunkline.core.events import (
    Envelope,
    Event,
    Gap,
    HistoryInjected,
    Journaled,
    JournalReplaced,
    Mode,
    TextDelta,
    ThinkingDelta,
    ToolCancelled,
    TurnEnded,
    UserMessage,
)
from trunkline.core.feed import QUEUE_LENGTH
from trunkline.core.log import EventLog, Restored
from trunkline.core.recorder import Recorder, Sink
from trunkline.core.turns import Action, Answer, Begin, BusyPolicy, Cancel, Emit, State, Turns
from trunkline.core.usage import NOTHING_USED

logger = logging.getLogger(__name__)

#: How long an agent may take to end its turn after `cancel`. With the next one, under the second that wires promise.
CANCEL_SECONDS = 0.7
#: How long a task may take to unwind after it was cancelled.
UNWIND_SECONDS = 0.1
#: How long a conversation may take to close. What it leaves running then, the process watchdog ends.
CLOSE_SECONDS = 0.5

#: Events handled before the loop gets a turn, so that an agent that never waits cannot keep out a `stop`.
EVENTS_PER_TICK = 128


class Session:
    """One conversation. Made by `open`, ended by `close`."""

    def __init__(
        self,
        log: EventLog,
        policy: Policy,
        *,
        restored: Restored | None = None,
        busy: BusyPolicy = "queue",
        redact: Callable[[Event], Event] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._recorder = Recorder(log, restored, clock, redact)
        self._emit = self._recorder.emit
        self.id = log.session
        self.state = self._recorder.state
        self.journal = _Journal(self)
        self._turns = Turns(policy, busy, turns_so_far=self.state.turns)
        self._conversation: Conversation | None = None
        self._loop = asyncio.get_running_loop()
        self._effects: deque[Callable[[], Awaitable[None]]] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._pump: asyncio.Task[None] | None = None
        self._pump_turn = 0
        self._ender: asyncio.Task[None] | None = None
        self._at_rest = asyncio.Event()
        self._at_rest.set()

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
        instructions: str | None = None,
        options: Mapping[str, Any] | None = None,
        redact: Callable[[Event], Event] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> Session:
        """Begin a session, or go on with the one that the log holds: its grants, its mode unless one is given here.

        Raises:
            ConfigError: the agent cannot work as configured.
        """
        session = cls(log, policy, restored=log.restore() if resume else None, busy=busy, redact=redact, clock=clock)
        session._close_dangling_turn()
        policy.grants.update(session.state.grants)
        policy.mode = mode or session.state.mode or policy.mode
        request = OpenRequest(
            session_id=log.session,
            journal=session.journal,
            resumed=resume,
            history=tuple(session.state.history),
            workspace=workspace,
            instructions=instructions,
            options=options,
        )
        session._conversation = await agent.open(request)
        return session

    @property
    def status(self) -> State:
        """Where the session is in its turn."""
        return self._turns.state

    @property
    def mode(self) -> Mode:
        """The approval mode."""
        return self._turns.policy.mode

    def attach(self, sink: Sink) -> None:
        """Show every later event to a sink."""
        self._recorder.sinks.append(sink)

    def detach(self, sink: Sink) -> None:
        """Stop showing."""
        self._recorder.sinks.remove(sink)

    async def subscribe(self, since: int | None = None, length: int = QUEUE_LENGTH) -> AsyncIterator[Envelope | Gap]:
        """Watch: the public events after sequence number `since` from the log, then those that come, without a hole.

        With `since` left out, only those that come. Ends with the session.
        """
        live = self._recorder.subscribe(length)
        try:
            if since is not None:
                for read, item in enumerate(self._recorder.read(since), 1):
                    yield item
                    if read % EVENTS_PER_TICK == 0:
                        await asyncio.sleep(0)
            async for item in live:
                yield item
        finally:
            live.close()

    def flush(self) -> None:
        """Show now what the sinks hold, the log first."""
        self._recorder.flush()

    # What a wire calls.

    def submit(self, message: UserMessage, refusal: faults.Fault | None = None) -> None:
        """Answer a message, now or when its turn comes. With a `refusal`: refuse it, in its place in the queue.

        Raises:
            AgentBusy: a turn is in progress and this session does not queue.
        """
        self._apply(self._turns.submit(message, refusal))

    def answer(self, call_id: str, decision: Decision) -> None:
        """Decide on a tool call that waits.

        Raises:
            UnknownCall: none of that id does.
        """
        self._apply(self._turns.answer(call_id, decision))

    def set_mode(self, mode: Mode) -> None:
        """Change the approval mode; requests that it allows are released."""
        self._apply(self._turns.set_mode(mode))

    def stop(self) -> None:
        """Stop the turn in progress and drop the queue. The turn ends within a second; the session lives on."""
        self._apply(self._turns.stop())

    async def configure(self, change: Change) -> None:
        """Change the conversation, ahead of every message that is submitted later.

        Raises:
            Fault: it did not work; `Unsupported` if the agent cannot do that.
        """
        done: asyncio.Future[None] = self._loop.create_future()

        async def effect() -> None:
            try:
                await self._agent.configure(change)
            except Exception as error:
                if not done.done():
                    done.set_exception(faults.of(error))
                return
            if isinstance(change, AddHistory):
                self._emit(self._turns.turn, HistoryInjected(change.text))
            if not done.done():
                done.set_result(None)

        self._enqueue(effect)
        await done

    async def at_rest(self) -> None:
        """Wait until no turn is in progress and none is queued."""
        await self._at_rest.wait()

    async def close(self) -> None:
        """End the turn in progress, close the agent and the log. Bounded in time; the log is whole afterwards."""
        self._apply(self._turns.close())
        await self._at_rest.wait()
        for task in (self._ender, self._worker, self._pump):
            if task is not None:
                await _unwound(task)
        if self._conversation is not None:
            try:
                await asyncio.wait_for(self._conversation.close(), CLOSE_SECONDS)
            except TimeoutError:
                logger.warning("the agent did not close within %s s", CLOSE_SECONDS)
            except Exception:
                logger.exception("the agent failed to close")
        await self._recorder.close()

    # The agent's side.

    @property
    def _agent(self) -> Conversation:
        if self._conversation is None:
            raise RuntimeError("a session is made by `Session.open`")
        return self._conversation

    def _apply(self, actions: Sequence[Action]) -> None:
        for action in actions:
            match action:
                case Emit(turn=turn, event=event):
                    self._emit(turn, event)
                case Begin(turn=turn, message=message):
                    self._at_rest.clear()
                    self._enqueue(partial(self._begin, turn, message))
                case Answer(turn=turn, call_id=call_id, decision=decision):
                    self._enqueue(partial(self._decide, turn, call_id, decision))
                case Cancel(turn=turn):
                    self._ender = self._loop.create_task(self._cancel(turn), name=f"cancel turn {turn}")
        if self._turns.state in (State.IDLE, State.CLOSED) and not self._at_rest.is_set():
            self._recorder.checkpoint_if_due()
            self._at_rest.set()

    def _enqueue(self, effect: Callable[[], Awaitable[None]]) -> None:
        """Effects on the agent happen one after the other, in the order they were decided."""
        self._effects.append(effect)
        if self._worker is None or self._worker.done():
            self._worker = self._loop.create_task(self._work(), name="session effects")

    async def _work(self) -> None:
        while self._effects:
            await self._effects.popleft()()

    async def _begin(self, turn: int, message: UserMessage) -> None:
        if self._pump is not None and not self._pump.done():
            await asyncio.wait({self._pump}, timeout=UNWIND_SECONDS)
            if not self._pump.done():
                fault = faults.AgentFailed("The agent is still busy with a turn that was stopped.")
                self._apply(self._turns.agent_failed(turn, fault))
                return
        if self._turns.turn == turn and self._turns.state is not State.ENDING:
            self._pump_turn = turn
            self._pump = self._loop.create_task(self._run(turn, message), name=f"turn {turn}")

    async def _run(self, turn: int, message: UserMessage) -> None:
        """Let the agent answer, and handle what it yields."""
        stream = self._agent.turn(message)
        ended: TurnEnded | None = None
        try:
            handled = 0
            sinks = self._recorder.sinks
            async for event in stream:
                if self._turns.turn != turn:
                    return
                kind = type(event)
                if (kind is TextDelta or kind is ThinkingDelta) and not self._turns.unacknowledged:
                    # Text moves no state: no need to ask the machine.
                    self._emit(turn, event)
                elif isinstance(event, TurnEnded):
                    ended = event
                    break
                else:
                    self._apply(self._turns.agent_says(turn, event))
                handled += 1
                if handled % EVENTS_PER_TICK == 0:
                    await asyncio.sleep(0)
                for sink in sinks:
                    if sink.congested:
                        await sink.drain()
        except Exception as error:
            if not isinstance(error, faults.Fault):
                logger.exception("the agent crashed in turn %d", turn)
            self._apply(self._turns.agent_failed(turn, faults.of(error)))
            return
        finally:
            await _left(stream)
        self._apply(self._turns.agent_says(turn, ended) if ended else self._turns.agent_gone(turn))

    async def _decide(self, turn: int, call_id: str, decision: Decision) -> None:
        if self._turns.turn != turn:
            return
        try:
            await self._agent.decide(call_id, decision)
        except Exception as error:
            logger.exception("the agent could not be told a decision")
            self._apply(self._turns.agent_failed(turn, faults.of(error)))
        else:
            self._apply(self._turns.resolved(turn, call_id))

    async def _cancel(self, turn: int) -> None:
        """Ask, wait, insist. Whatever the agent does, the turn is over afterwards."""
        pump = self._pump if self._pump_turn == turn else None
        try:
            async with asyncio.timeout(CANCEL_SECONDS):
                await self._agent.cancel()
                if pump is not None and not pump.done():
                    await asyncio.wait({pump})
        except TimeoutError:
            logger.warning("the agent did not stop within %s s", CANCEL_SECONDS)
        except Exception:
            logger.exception("the agent failed to stop")
        if pump is not None and not pump.done():
            pump.cancel()
            await asyncio.wait({pump}, timeout=UNWIND_SECONDS)
        # A turn that never reached the agent has used nothing; of one that had to be cut off, nobody knows.
        self._apply(self._turns.expired(turn, NOTHING_USED if pump is None else None))

    def _close_dangling_turn(self) -> None:
        """A turn that the process did not live to end: what became of it, nobody knows."""
        turn = self.state.open_turn
        if turn is None:
            return
        for call_id in tuple(self.state.open_calls):
            self._emit(turn, ToolCancelled(call_id, "The process ended before this tool did"))
        self._emit(turn, TurnEnded("unknown"))


class _Journal:
    """The agent's records, kept in the session's log."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def records(self) -> Sequence[Any]:
        return tuple(self._session.state.journal)

    def append(self, record: Any) -> None:
        self._session._emit(self._session._turns.turn, Journaled(record))

    def replace(self, records: Sequence[Any]) -> None:
        self._session._emit(self._session._turns.turn, JournalReplaced(tuple(records)))


async def _left(stream: Any) -> None:
    """Leave an agent's iterator for good, whatever it thinks of that."""
    if not hasattr(stream, "aclose"):
        return
    try:
        await asyncio.wait_for(stream.aclose(), UNWIND_SECONDS)
    except TimeoutError:
        logger.warning("the agent's turn did not unwind within %s s", UNWIND_SECONDS)
    except Exception:
        logger.exception("the agent's turn failed to unwind")


async def _unwound(task: asyncio.Task[None]) -> None:
    """Wait for a task of ours that is ending; cancel it if it does not."""
    await asyncio.wait({task}, timeout=UNWIND_SECONDS)
    if not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=UNWIND_SECONDS)
