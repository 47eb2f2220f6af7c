"""Plays one turn of a script: the steps run in a task of their own, their events come out one by one.

    player = Player(turn, words={"input": "hello"}, ...)
    while (event := await player.next()) is not None: ...
    await player.stop()

The steps never run far ahead of whoever takes the events. `cancel` ends the turn as a user's stop does; `stop` ends
everything, whatever the script says. Tools that one step requests are decided and run side by side.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping

from trunkline.agents import tool_process
from trunkline.agents.placeholders import fill
from trunkline.agents.script import Crash, Hang, Hear, Say, ScriptCall, ScriptStep, ScriptTurn, UseTools, Vanish, Wait
from trunkline.core.agent import Approve, Decision, Deny
from trunkline.core.approvals import Decisions
from trunkline.core.events import (
    Event,
    Progress,
    Steered,
    ToolCancelled,
    ToolFinished,
    ToolRequested,
    ToolStarted,
    TurnEnded,
    UserMessage,
)
from trunkline.core.turns import DENIED, STOPPED

#: Hosts give up on an agent that is silent for 15 seconds: a running tool says so more often.
PROGRESS_SECONDS = 10.0
#: Events that the steps may be ahead of their reader.
AHEAD = 4
#: How long `stop` waits for a tool's processes to be gone, which have their own, shorter limits.
UNWIND_SECONDS = 2.0

Words = Mapping[str, str]


class ScriptedCrash(Exception):
    """What a `raise` step raises."""


class _Vanished(Exception):
    """The turn is to end without a `TurnEnded`."""


class Player:
    """One turn being played."""

    def __init__(
        self,
        turn: ScriptTurn,
        words: Words,
        *,
        new_id: Callable[[str | None], str],
        workspace: str,
        preface: Iterable[Event] = (),
        progress_seconds: float = PROGRESS_SECONDS,
    ) -> None:
        self._turn = turn
        self._words = words
        self._new_id = new_id
        self._workspace = workspace
        self._progress_seconds = progress_seconds
        self._decisions = Decisions()
        self._preface = tuple(preface)
        self._said: deque[Event] = deque()
        self._room = asyncio.Semaphore(AHEAD)
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._open_calls: list[str] = []
        self._cancelled = False
        self._deaf = False
        self._ended = False

    async def next(self) -> Event | None:
        """The next event, or None when there is none any more.

        Raises:
            ScriptedCrash: the script says so.
        """
        if self._task is None and not self._cancelled:
            self._task = asyncio.create_task(self._run(), name="scripted turn")
            self._task.add_done_callback(lambda _: self._news.set())
        while not self._said or self._cancelled:
            if self._task is None or self._task.done():
                return self._end()
            self._news.clear()
            await self._news.wait()
        self._room.release()
        return self._seen(self._said.popleft())

    def decide(self, call_id: str, decision: Decision) -> None:
        """Answer a `ToolRequested`."""
        self._decisions.resolve(call_id, decision)

    def cancel(self) -> None:
        """Stop soon: what is left to come is a `ToolCancelled` for each open call, and `TurnEnded`."""
        if self._deaf or self._cancelled:
            return
        self._cancelled = True
        self._news.set()
        if self._task is not None:
            self._task.cancel()

    async def stop(self) -> None:
        """End whatever still runs. Bounded in time; may be called again."""
        self._ended = True
        if self._task is None:
            return
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=UNWIND_SECONDS)
        self._decisions.deny_all(STOPPED)
        if self._task.done() and not self._task.cancelled():
            # Marks it as seen: a crash that nobody waited for is not worth a complaint of the event loop.
            self._task.exception()

    def _seen(self, event: Event) -> Event:
        match event:
            case ToolRequested(call_id=call_id):
                self._open_calls.append(call_id)
            case ToolFinished(call_id=call_id) | ToolCancelled(call_id=call_id):
                self._open_calls.remove(call_id)
        return event

    def _end(self) -> Event | None:
        """What is left to say when all steps are over."""
        if self._ended:
            return None
        if self._cancelled and self._open_calls:
            return self._seen(ToolCancelled(self._open_calls[0], STOPPED))
        self._ended = True
        if self._cancelled or self._task is None:
            return TurnEnded("cancelled", self._turn.usage)
        try:
            self._task.result()
        except _Vanished:
            return None
        return TurnEnded(self._turn.outcome, self._turn.usage)

    # What follows runs in the task.

    async def _run(self) -> None:
        for event in self._preface:
            await self._say(event)
        await self._steps(self._turn.steps, self._words)

    async def _say(self, event: Event) -> None:
        await self._room.acquire()
        self._said.append(event)
        self._news.set()

    async def _steps(self, steps: Iterable[ScriptStep], words: Words) -> None:
        for step in steps:
            await self._step(step, words)

    async def _step(self, step: ScriptStep, words: Words) -> None:
        match step:
            case Say(event=event):
                texts = {field: fill(getattr(event, field), words) for field in event.__fields__}
                await self._say(event.replace(**texts))
            case Hear(text=text):
                await self._say(Steered(UserMessage(fill(text, words))))
            case Wait(seconds=seconds):
                await asyncio.sleep(seconds)
            case UseTools(calls=calls):
                await self._use(calls, words)
            case Crash(message=message):
                raise ScriptedCrash(fill(message, words))
            case Vanish():
                raise _Vanished
            case Hang(deaf=deaf):
                self._deaf = deaf
                await asyncio.get_running_loop().create_future()
            case _:
                raise TypeError(f"no such step: {step!r}")

    async def _use(self, calls: tuple[ScriptCall, ...], words: Words) -> None:
        """Request all calls, then see each through; what the script says to the outcomes comes last, in order."""
        requests = []
        for call in calls:
            call_id = self._new_id(fill(call.id, words))
            decision = self._decisions.ask(call_id)
            requests.append((call_id, decision))
            texts = [fill(text, words) for text in (call.name, call.args, call.description)]
            await self._say(ToolRequested(call_id, texts[0], call.category, texts[1], texts[2]))
        async with asyncio.TaskGroup() as group:
            uses = [
                group.create_task(self._see_through(call, call_id, decision, words), name=f"tool call {call_id}")
                for call, (call_id, decision) in zip(calls, requests, strict=True)
            ]
        for use in uses:
            steps, more_words = use.result()
            # Without any words, nothing is a placeholder.
            await self._steps(steps, {**words, **more_words} if words else words)

    async def _see_through(
        self, call: ScriptCall, call_id: str, answer: asyncio.Future[Decision], words: Words
    ) -> tuple[tuple[ScriptStep, ...], Words]:
        """Wait for the decision and act on it; gives the steps that come after it."""
        decision = await answer
        if not isinstance(decision, Approve):
            reason = (decision.reason if isinstance(decision, Deny) else "") or DENIED
            await self._say(ToolCancelled(call_id, reason))
            return call.denied, {"reason": reason}
        name = fill(call.name, words)
        await self._say(ToolStarted(call_id, name))
        async with asyncio.TaskGroup() as group:
            alive = group.create_task(self._show_life(call_id, name), name=f"progress of {call_id}")
            result = await self._result(call, call_id, words)
            alive.cancel()
        await self._say(result)
        return call.approved, {"output": result.output}

    async def _show_life(self, call_id: str, name: str) -> None:
        seconds = 0.0
        while True:
            await asyncio.sleep(self._progress_seconds)
            seconds += self._progress_seconds
            await self._say(Progress(f"`{name}` is still running after {seconds:g} s", call_id))

    async def _result(self, call: ScriptCall, call_id: str, words: Words) -> ToolFinished:
        await asyncio.sleep(call.takes)
        output, status = fill(call.output or "", words), call.status or "success"
        if call.run is not None:
            ran = await tool_process.run(fill(call.run, words), self._workspace)
            if call.output is None:
                output = ran.output
            if call.status is None and ran.code != 0:
                status = "error"
        metadata = fill(call.metadata, words)
        return ToolFinished(call_id, fill(call.name, words), status, output, call.output_type, metadata)
