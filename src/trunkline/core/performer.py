"""Carries out what `core.turns` decides: on the agent, and on the record.

Everything that touches the agent happens in tasks that belong to the session and end with it, and every wait in them is
bounded: an agent that hangs, leaks a cancellation, raises at the wrong moment or ignores everything costs its own turn
and nothing else.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from trunkline.core import fault_kinds, faults
from trunkline.core.actions import Abandon, Action, Begin, Cancel, Decide, Emit, GoOn
from trunkline.core.agent import AddHistory, AddMcpServer, Change, Conversation, Decision
from trunkline.core.events import (
    Event,
    Failed,
    HistoryInjected,
    Progress,
    TextDelta,
    ThinkingDelta,
    TurnEnded,
    UserMessage,
)
from trunkline.core.recorder import EVENTS_PER_TICK, Recorder
from trunkline.core.turns import State, Turns
from trunkline.core.usage import NOTHING_USED

logger = logging.getLogger(__name__)

#: How long an agent may take to end its turn after `cancel`. With the next one, under the second that wires promise.
CANCEL_SECONDS = 0.7
#: How long a task may take to unwind after it was cancelled.
UNWIND_SECONDS = 0.1
#: How long a conversation may take to close, unless it asks for more (`close_seconds`). What it leaves running then,
#: the process watchdog ends.
CLOSE_SECONDS = 0.5
#: How long an agent may take to hear a decision, which it is to take note of and no more.
DECIDE_SECONDS = 5.0
#: How long a change may take: the connection to a server of tools is made meanwhile. Longer than that may take by
#: itself, so that whoever makes it can say what is wrong with the server.
CONFIGURE_SECONDS = 31.0

#: Events handled before the disk and the host are asked whether they keep up.
EVENTS_PER_LOOK = 16

#: Hosts give up after 15 s of silence. A turn that said nothing from one look to the next shows a sign of life.
HEARTBEAT_SECONDS = 5.0

Effect = Callable[[], Awaitable[None]]
#: `Conversation.turn`, or `go_on`.
Answering = Callable[[UserMessage], AsyncIterator[Event]]


class Performer:
    """Plays the turns of one session."""

    def __init__(self, turns: Turns, recorder: Recorder) -> None:
        self.conversation: Conversation | None = None
        self.entered: Callable[[int], None] = lambda turn: None
        """Called in the task of each turn, before the agent hears of it."""
        self._turns = turns
        self._recorder = recorder
        self._loop = asyncio.get_running_loop()
        self._effects: deque[Effect] = deque()
        self._beginning: Effect = _nothing
        """The beginning of the latest turn: while it waits among the effects, the agent has not heard the message."""
        self._for_next: list[Effect] = []
        """What is to be told to the agent when the turn in progress has ended."""
        self._untold: dict[asyncio.Future[None], AddHistory] = {}
        """What was said before the conversation, as far as the agent has not heard it."""
        self._worker: asyncio.Task[None] | None = None
        self._pump: asyncio.Task[None] | None = None
        self._pump_turn = 0
        self._leaving = 0
        """The turn whose pump we cancelled ourselves."""
        self._ender: asyncio.Task[None] | None = None
        self._pulse: asyncio.TimerHandle | None = None
        self._closed = False
        self.idle = asyncio.Event()
        """Set while no turn is in progress and none waits."""
        self.idle.set()

    @property
    def _agent(self) -> Conversation:
        if self.conversation is None:
            raise RuntimeError("a session is made by `Session.open`")
        return self.conversation

    def apply(self, actions: Sequence[Action]) -> None:
        """Do all of it, in order, whatever becomes of each."""
        spoilt: list[tuple[int, Exception]] = []
        for action in actions:
            match action:
                case Emit(turn=turn, event=event):
                    if isinstance(event, TurnEnded):
                        self._release()
                    try:
                        self._recorder.emit(turn, event)
                    except Exception as error:
                        # It holds what cannot be written. Of an end, the fact matters more than the figures.
                        logger.exception("an event of turn %d cannot be recorded", turn)
                        if isinstance(event, TurnEnded):
                            self._recorder.emit(turn, Failed("agent", f"The agent ended its turn badly: {error}"))
                            self._recorder.emit(turn, TurnEnded("error"))
                        else:
                            spoilt.append((turn, error))
                case Begin(turn=turn, message=message) | GoOn(turn=turn, message=message):
                    self.idle.clear()
                    self._beginning = partial(self._begin, turn, message, goes_on=isinstance(action, GoOn))
                    self._enqueue(self._beginning)
                case Decide(turn=turn, call_id=call_id, decision=decision):
                    self._enqueue(partial(self._decide, turn, call_id, decision))
                case Cancel(turn=turn):
                    self._ender = self._loop.create_task(self._cancel(turn), name=f"cancel turn {turn}")
                case Abandon(turn=turn):
                    self._ender = self._loop.create_task(self._abandon(turn), name=f"abandon turn {turn}")
        if self._turns.state in (State.IDLE, State.CLOSED) and not self.idle.is_set():
            self._recorder.checkpoint_if_due()
            self.idle.set()
        for turn, reason in spoilt:
            self.apply(
                self._turns.fail(
                    turn, faults.AgentFailed(f"The agent sent something that cannot be recorded: {reason}")
                )
            )

    def configure(self, change: Change) -> asyncio.Future[None]:
        """Change the conversation, ahead of every message that is submitted after this call.

        What was said before the conversation goes ahead even of a message that still waits to begin. One that has
        begun is answered without it: the agent hears it as soon as that turn has ended.
        """
        done: asyncio.Future[None] = self._loop.create_future()
        effect = partial(self._configure, change, done)
        if self._closed:
            done.set_exception(faults.AgentBusy("The session is closed."))
        elif not isinstance(change, AddHistory):
            self._enqueue(effect)
        else:
            self._untold[done] = change
            if self._beginning in self._effects:
                self._effects.insert(self._effects.index(self._beginning), effect)
            elif self._turns.turn:
                self._for_next.append(effect)
            else:
                self._enqueue(effect)
        return done

    def _release(self) -> None:
        """What waits for the end of the turn need not wait any longer than the agent takes to leave it."""
        if self._for_next:
            self._enqueue(self._left)
        while self._for_next:
            self._enqueue(self._for_next.pop(0))

    async def close(self) -> None:
        """Wait for the turn in progress, which has been told to end, and let go of the agent. Bounded in time."""
        await self.idle.wait()
        self._closed = True
        self._stop_pulse()
        for task in (self._ender, self._pump):
            if task is not None:
                await _unwound(task, UNWIND_SECONDS)
        if self._worker is not None:
            await _unwound(self._worker, UNWIND_SECONDS)
        for done, change in self._untold.items():
            # The agent had no time to hear it in this process; in the one that resumes the session it will.
            self._recorder.emit(0, HistoryInjected(change.text))
            if not done.done():
                done.set_result(None)
        await self._let_go()

    async def leave(self) -> None:
        """Let go of the agent in the middle of a turn, of which nothing more is heard. Bounded in time."""
        self._closed = True
        self._stop_pulse()
        self._leaving = self._pump_turn
        for task in (self._worker, self._ender, self._pump):
            if task is not None:
                await _unwound(task, 0)
        await self._let_go()

    async def _let_go(self) -> None:
        if self.conversation is not None:
            seconds: float = getattr(self.conversation, "close_seconds", CLOSE_SECONDS)
            closing = self._loop.create_task(_awaited(self.conversation.close()), name="close the agent")
            if not await _unwound(closing, seconds):
                logger.warning("the agent did not close within %s s", seconds)

    # Effects on the agent happen one after the other, in the order they were decided.

    def _enqueue(self, effect: Effect) -> None:
        self._effects.append(effect)
        if self._worker is None or self._worker.done():
            self._worker = self._loop.create_task(self._work(), name="session effects")

    async def _work(self) -> None:
        while self._effects:
            await self._effects.popleft()()

    async def _configure(self, change: Change, done: asyncio.Future[None]) -> None:
        who = f"MCP server `{change.name}`" if isinstance(change, AddMcpServer) else "The agent"
        # A change takes its time, and messages wait behind it: show signs of life, in a turn and outside of one.
        progress = Progress(f"Still waiting: {who} has not answered yet")
        try:
            await _bounded(
                self._agent.configure(change),
                CONFIGURE_SECONDS,
                who,
                beat=lambda: self._recorder.emit(self._turns.turn, progress),
            )
            if isinstance(change, AddHistory):
                self._recorder.emit(self._turns.turn, HistoryInjected(change.text))
        except Exception as error:
            if not done.done():
                done.set_exception(fault_kinds.of(error))
        except asyncio.CancelledError:
            # The session ends: `close` keeps what the agent has not heard.
            if done not in self._untold and not done.done():
                done.set_result(None)
            raise
        self._untold.pop(done, None)
        if not done.done():
            done.set_result(None)

    async def _decide(self, turn: int, call_id: str, decision: Decision) -> None:
        if self._turns.turn != turn or not await self._recorder.kept():
            return
        try:
            await _bounded(self._agent.decide(call_id, decision), DECIDE_SECONDS, "The agent")
        except Exception as error:
            logger.exception("the agent could not be given a decision")
            self.apply(self._turns.fail(turn, fault_kinds.of(error)))
        else:
            self.apply(self._turns.resolved(turn, call_id))

    async def _left(self) -> None:
        """Wait until the agent has left its turn. Bounded in time."""
        for task in (self._ender, self._pump):
            if task is not None and not task.done():
                await asyncio.wait({task}, timeout=CANCEL_SECONDS + 2 * UNWIND_SECONDS)

    async def _begin(self, turn: int, message: UserMessage, *, goes_on: bool) -> None:
        await self._left()
        # Whoever finds its beginning in the log does not begin it again.
        if not await self._recorder.kept() or self._turns.turn != turn or self._turns.state is State.ENDING:
            return
        if self._pump is not None and not self._pump.done():
            fault = faults.AgentFailed("The agent is still busy with a turn that was stopped.")
            self.apply(self._turns.agent_failed(turn, fault))
            return
        self._pump_turn = turn
        answer: Answering = getattr(self._agent, "go_on" if goes_on else "turn")
        self._pump = self._loop.create_task(self._run(turn, answer, message), name=f"turn {turn}")
        self._stop_pulse()
        self._await_beat(turn)

    # The turn itself.

    async def _run(self, turn: int, answer: Answering, message: UserMessage) -> None:
        self.entered(turn)
        try:
            ended = await self._listen(turn, answer, message)
        except asyncio.CancelledError:
            if self._leaving == turn:
                raise
            # Not ours: something that the agent awaited was cancelled, and it let that through.
            self.apply(
                self._turns.agent_failed(turn, faults.AgentFailed("The agent's work was cancelled from inside."))
            )
        except Exception as error:
            if not isinstance(error, faults.Fault):
                logger.exception("the agent crashed in turn %d", turn)
            self.apply(self._turns.agent_failed(turn, fault_kinds.of(error)))
        else:
            self.apply(self._turns.agent_says(turn, ended) if ended else self._turns.agent_gone(turn))

    async def _listen(self, turn: int, answer: Answering, message: UserMessage) -> Event | None:
        """Let the agent answer, and handle what it yields; gives its `TurnEnded`, or None if it never came."""
        stream = answer(message)
        turns, recorder = self._turns, self._recorder
        try:
            handled = 0
            async for event in stream:
                if turns.turn != turn:
                    return None
                kind = type(event)
                if (kind is TextDelta or kind is ThinkingDelta) and not turns.unacknowledged:
                    # Text moves no state: no need to ask the machine.
                    recorder.emit(turn, event)
                elif kind is TurnEnded:
                    return event
                else:
                    self.apply(turns.agent_says(turn, event))
                handled += 1
                if handled % EVENTS_PER_LOOK == 0:
                    if recorder.congested:
                        await recorder.drain()
                    if handled % EVENTS_PER_TICK == 0:
                        await asyncio.sleep(0)
            return None
        finally:
            await self._leave(stream)

    async def _leave(self, stream: Any) -> None:
        """Leave an agent's iterator for good, whatever it thinks of that."""
        if hasattr(stream, "aclose"):
            leaving = self._loop.create_task(_awaited(stream.aclose()), name="leave the agent's turn")
            if not await _unwound(leaving, UNWIND_SECONDS):
                logger.warning("the agent's turn did not unwind within %s s", UNWIND_SECONDS)

    async def _cancel(self, turn: int) -> None:
        """Ask, wait, insist. Whatever the agent does, the turn is over afterwards."""
        if self._turns.turn != turn:
            return
        pump = self._pump if self._pump_turn == turn else None
        asking = self._loop.create_task(_awaited(self._agent.cancel()), name="ask the agent to stop")
        waiting = {asking} if pump is None else {asking, pump}
        await asyncio.wait(waiting, timeout=CANCEL_SECONDS)
        asking.cancel()
        if pump is not None and not pump.done():
            logger.warning("the agent did not stop within %s s", CANCEL_SECONDS)
            self._leaving = turn
            await _unwound(pump, 0)
        # A turn that never reached the agent has used nothing; of one that had to be cut off, nobody knows.
        self.apply(self._turns.expired(turn, NOTHING_USED if pump is None else None))

    async def _abandon(self, turn: int) -> None:
        """The turn is over, and the agent does not know: tell it, and do not listen any longer."""
        if self._pump is None or self._pump.done() or self._pump_turn != turn:
            return
        await _unwound(self._loop.create_task(_awaited(self._agent.cancel())), UNWIND_SECONDS)
        self._leaving = turn
        await _unwound(self._pump, UNWIND_SECONDS)

    # Signs of life.

    def _await_beat(self, turn: int) -> None:
        self._pulse = self._loop.call_later(HEARTBEAT_SECONDS, self._beat, turn, self._recorder.seq)

    def _beat(self, turn: int, seq: int) -> None:
        """Look whether the turn has said anything since the last look; nobody misses it while a person is asked."""
        if self._turns.turn != turn or self._closed:
            return
        if self._turns.state is State.RUNNING and self._recorder.seq == seq:
            self._recorder.emit(turn, Progress("Still working"))
        self._await_beat(turn)

    def _stop_pulse(self) -> None:
        if self._pulse is not None:
            self._pulse.cancel()


async def _awaited(work: Awaitable[Any]) -> None:
    """Await something of the agent's; what it raises is logged, and nobody else's business."""
    try:
        await work
    except Exception:
        logger.exception("the agent failed to end something")


async def _nothing() -> None:
    pass


async def _bounded(work: Awaitable[None], seconds: float, who: str, beat: Callable[[], None] | None = None) -> None:
    """Await somebody's answer, but not for ever, even if it ignores its cancellation. `beat` is called meanwhile.

    Raises:
        AgentTimeout: it took too long.
    """
    task = asyncio.ensure_future(work)
    loop = task.get_loop()
    end = loop.time() + seconds
    try:
        while not task.done() and (left := end - loop.time()) > 0:
            await asyncio.wait({task}, timeout=min(left, HEARTBEAT_SECONDS))
            if beat is not None and not task.done() and left > HEARTBEAT_SECONDS:
                beat()
    except asyncio.CancelledError:
        task.cancel()
        raise
    if not task.done():
        task.cancel()
        raise faults.AgentTimeout(f"{who} did not answer within {seconds:g} s.")
    if task.cancelled():
        raise faults.AgentFailed("The agent's work was cancelled from inside.")
    task.result()


async def _unwound(task: asyncio.Task[None], seconds: float) -> bool:
    """Wait for a task that is ending; cancel it if it does not, and wait a little more. Whether it is over."""
    if not task.done() and seconds:
        await asyncio.wait({task}, timeout=seconds)
    if not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=UNWIND_SECONDS)
    return task.done()
