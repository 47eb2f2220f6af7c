"""One round of tool calls: all announced together, each decided by itself, run, and answered in the order of the calls.

Tools that change nothing run side by side; the others one after the other, as they are approved.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from trunkline.agents.coder.words import UNSEEN
from trunkline.agents.turn_stream import TurnStream
from trunkline.core.agent import Approve, Decision, Deny
from trunkline.core.approvals import Decisions
from trunkline.core.events import Progress, ToolCancelled, ToolFinished, ToolRequested, ToolStarted
from trunkline.core.guarded import beyond
from trunkline.core.turns import DENIED
from trunkline.models.messages import Image, ToolResultBlock, ToolUse
from trunkline.models.model import ToolSpec
from trunkline.tools.arguments import BadArguments
from trunkline.tools.tool import CALL_ID, Interrupted, Tool, ToolOutput
from trunkline.tools.toolbox import PreparedCall, Toolbox

#: What is said to a model whose call was approved for another place than the one that it would reach now.
MOVED = (
    "Not done: this path leads to another place than when the call was approved, because a link or a directory has "
    "changed since. Call the tool again if that is intended; it will need a new approval."
)


class _Asked(NamedTuple):
    """A call that somebody decides about, as it was read."""

    reading: PreparedCall
    place: str
    outside: bool
    """Where it led when it was judged."""
    decision: asyncio.Future[Decision]


class Calls:
    """Runs the calls of one conversation's model."""

    def __init__(self, toolbox: Toolbox, decisions: Decisions, prefix: str = "", who: str = "") -> None:
        self.toolbox = toolbox
        self._decisions = decisions
        self._prefix = prefix
        """What makes a sub-agent's call ids differ from its parent's."""
        self._who = who
        """The sub-agent that asks; people see it with each request."""
        self._one_at_a_time = asyncio.Lock()
        self._on_early: Callable[[ToolResultBlock], None] = lambda result: None
        self._alone = True
        self._described: list[Tool | None] = []
        self._specs: tuple[ToolSpec, ...] = ()
        self.done: dict[str, ToolResultBlock] = {}
        """The results of the round under way, by call: what a stop must not lose."""

    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools, as the model sees them: the same objects as long as they are the same tools."""
        tools = [self.toolbox.find(name) for name in self.toolbox.names]
        if tools != self._described:
            self._described = tools
            self._specs = tuple(ToolSpec(*spec) for spec in self.toolbox.specs())
        return self._specs

    async def run(
        self,
        calls: Sequence[ToolUse],
        tell: TurnStream,
        on_early: Callable[[ToolResultBlock], None],
        done: Mapping[str, ToolResultBlock] | None = None,
    ) -> list[ToolResultBlock]:
        """See all of them through; gives one result each, in order.

        Args:
            on_early: hears at once what a crash would make the result of each: of its start, and, where there are
                several, of its end.
            done: the results of those that an earlier process saw through.
        """
        self.done = dict(done or {})
        self._on_early = on_early
        self._alone = len(calls) == 1
        announced = []
        for call in calls:
            if call.id in self.done:
                continue
            announced.append((call, await self._announce(call, tell)))
        async with asyncio.TaskGroup() as group:
            for call, asked in announced:
                group.create_task(self._see_through(call, asked, tell), name=f"tool call {call.id}")
        return [self.done[call.id] for call in calls]

    async def _announce(self, call: ToolUse, tell: TurnStream) -> _Asked | ToolOutput:
        """Read a call and ask for a decision; not on one that cannot work, which nobody needs to think about."""
        try:
            reading = self.toolbox.read(call.name, call.input)
        except BadArguments as error:
            return ToolOutput(str(error), status="error")
        call_id = self._prefix + call.id
        decision = self._decisions.ask(call_id)
        place, outside = reading.place, reading.outside
        described = reading.description + (f" ({beyond(reading.args)})" if outside else "")
        description = f"{self._who}: {described}" if self._who else described
        category = reading.tool.category
        await tell.say(ToolRequested(call_id, call.name, category, reading.args, description, outside))
        return _Asked(reading, place, outside, decision)

    async def _see_through(self, call: ToolUse, asked: _Asked | ToolOutput, tell: TurnStream) -> None:
        if isinstance(asked, ToolOutput):
            await self._begin(call, tell)
            await self._end(call, asked, tell)
            return
        verdict = await asked.decision
        if not isinstance(verdict, Approve):
            reason = (verdict.reason if isinstance(verdict, Deny) else "") or DENIED
            self._finish(ToolResultBlock(call.id, f"Tool denied: {reason}", is_error=True))
            await tell.say(ToolCancelled(self._prefix + call.id, reason))
        elif asked.reading.tool.concurrent:
            await self._use(call, asked, tell)
        else:
            async with self._one_at_a_time:
                await self._use(call, asked, tell)

    async def _use(self, call: ToolUse, asked: _Asked, tell: TurnStream) -> None:
        await self._begin(call, tell)
        call_id = self._prefix + call.id
        # Each call has a task of its own, and with it a context.
        CALL_ID.set(call_id)
        reading = asked.reading
        # An answer may take days. What it was given for is where the call led then, and not where it leads by now.
        if (reading.place, reading.outside) != (asked.place, asked.outside):
            await self._end(call, ToolOutput(MOVED, status="error"), tell)
            return
        try:
            output = await reading.run(lambda text: tell.say_now(Progress(text, call_id)))
        except Interrupted as stop:
            # People have seen that it was stopped; the model is told how far it came.
            self.done[call.id] = ToolResultBlock(call.id, stop.output.text, is_error=True)
            self._on_early(self.done[call.id])
            raise
        await self._end(call, output, tell)

    async def _begin(self, call: ToolUse, tell: TurnStream) -> None:
        self._on_early(ToolResultBlock(call.id, UNSEEN, is_error=True))
        await tell.say(ToolStarted(self._prefix + call.id, call.name))

    async def _end(self, call: ToolUse, output: ToolOutput, tell: TurnStream) -> None:
        call_id = self._prefix + call.id
        pictures = tuple(Image(media_type, data) for media_type, data in output.images)
        self._finish(ToolResultBlock(call.id, output.text, output.status == "error", pictures))
        shown = output.text if output.shown is None else output.shown
        await tell.say(ToolFinished(call_id, call.name, output.status, shown, output.output_type, output.metadata))

    def _finish(self, result: ToolResultBlock) -> None:
        self.done[result.id] = result
        if not self._alone:
            self._on_early(result)
